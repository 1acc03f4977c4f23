"""The difference between two objects, as a merge patch."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from growth.api.kinds import Json
from growth.kube.changes import difference

KEYS = st.sampled_from(["a", "b", "c", "metadata", ""])
SCALARS = st.one_of(st.booleans(), st.integers(-3, 3), st.text(max_size=2), st.floats(allow_nan=False, width=16))
INSIDE_LISTS = st.recursive(
    st.one_of(SCALARS, st.none()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
VALUES = st.recursive(
    SCALARS | st.lists(INSIDE_LISTS, max_size=3),
    lambda inner: st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)


def merged(target: Any, patch: Any) -> Any:
    """RFC 7386, section 2, word for word."""
    if not isinstance(patch, dict):
        return patch
    result: Json = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def exact(value: Any) -> Any:
    """The value with True and 1 told apart, as JSON does and Python's equality does not."""
    if isinstance(value, dict):
        return {key: exact(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [exact(inner) for inner in value]
    return (isinstance(value, bool), value)


@given(OBJECTS, OBJECTS)
def test_the_difference_leads_from_one_object_to_the_other(before: Json, after: Json) -> None:
    """Whatever two objects without nulls in their maps: merging the difference into the one gives the other."""
    assert exact(merged(before, difference(before, after))) == exact(after)


@given(OBJECTS)
def test_equal_objects_have_no_difference(before: Json) -> None:
    """Nothing changed, nothing to write."""
    assert difference(before, before) == {}


@given(OBJECTS, OBJECTS, OBJECTS)
def test_keys_that_neither_object_has_are_left_alone(before: Json, after: Json, meanwhile: Json) -> None:
    """What others added to maps meanwhile survives a difference that says nothing of it."""
    theirs = {f"their-{key}": value for key, value in meanwhile.items()}
    result = merged({**before, **theirs}, difference(before, after))
    assert exact(result) == exact({**after, **theirs})
