"""The informer's store under any news: what subscribers are told always adds up to what the store holds."""

from hypothesis import given
from hypothesis import strategies as st

from growth.kube.store import Added, Change, Changed, Deleted, Entry, Key, Store

NAMES = st.sampled_from(["a", "b", "c"])
VERSIONS = st.integers(1, 6)
UIDS = st.sampled_from(["u1", "u2"])
ENTRIES = st.builds(lambda uid, version: Entry(uid, str(version), f"{uid}@{version}"), UIDS, VERSIONS)
NEWS = st.one_of(
    st.tuples(st.just("put"), NAMES, ENTRIES),
    st.tuples(st.just("drop"), NAMES, ENTRIES),
    st.tuples(st.just("replace"), st.dictionaries(NAMES, ENTRIES), st.none()),
)


def key(name: str) -> Key:
    return ("default", name)


def hear(told: dict[Key, str], change: Change[str]) -> None:
    match change:
        case Added(where, new):
            assert where not in told
            told[where] = new
        case Changed(where, old, new):
            assert told[where] == old
            assert old[:2] == new[:2], "a change never crosses incarnations"
            told[where] = new
        case Deleted(where, old, final):
            assert final or told[where] == old
            assert told.pop(where)[:2] == old[:2]


@given(st.lists(NEWS, max_size=30))
def test_changes_add_up_to_the_store(news: list[tuple[str, object, object]]) -> None:
    """Whatever is put, dropped or replaced, in any order: replaying the changes gives the store, and indexes agree."""
    store = Store[str]({"incarnation": lambda value: [value[:2]]})
    told: dict[Key, str] = {}
    for what, first, second in news:
        if what == "replace":
            assert isinstance(first, dict)
            fresh = {key(name): entry for name, entry in first.items()}
            changes = store.replace(fresh)
        else:
            assert isinstance(first, str)
            assert isinstance(second, Entry)
            changes = (store.put if what == "put" else store.drop)(key(first), second)
        for change in changes:
            hear(told, change)
        assert told == dict(store.items())
        store.validate()
        if what == "replace":
            assert set(told) == set(fresh)
