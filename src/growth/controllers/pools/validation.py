"""What is wrong with a NodePool that its definition let pass: each problem names the field and what to do. No I/O.

The API server checks most of it when a pool is written, but not what needs several fields together, and nothing at all
of what is stored already or was checked by another definition than ours.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from growth.api import names
from growth.api.karpenter import LABEL_VALUE, NEVER, NodePool, Requirement
from growth.api.placement import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, QUALIFIED_NAME, Taint
from growth.api.pools import HARD, SOFT
from growth.planning import requirements
from growth.planning.requirements import RequirementError
from growth.units import Duration, DurationError, QuantityError
from growth.units.resources import amount_of

_KEY: Final = re.compile(QUALIFIED_NAME)
_VALUE: Final = re.compile(LABEL_VALUE)
_PREFIX_CHARACTERS: Final = 253
_NAME_CHARACTERS: Final = 63
_EFFECTS: Final = (NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE)


def problems(pool: NodePool) -> tuple[str, ...]:
    """Every problem, in the order of the fields; none for a pool that machines can be bought from."""
    return (
        *_labels(pool),
        *_requirements(pool),
        *_taints(pool),
        *_durations(pool),
        *_limits(pool),
        *_annotations(pool),
    )


def _labels(pool: NodePool) -> Iterator[str]:
    for key, value in pool.spec.template.metadata.labels.items():
        where = f"spec.template.metadata.labels[{key}]"
        if not _is_key(key):
            yield f"{where}: the key is no label name"
        elif _is_restricted(key) or key == names.NODE_POOL_LABEL:
            yield f"{where}: the label is restricted and cannot be set"
        if not _is_value(value):
            yield f"{where}: {value!r} is no label value: at most 63 letters, digits, -, _ and ."


def _requirements(pool: NodePool) -> Iterator[str]:
    template = pool.spec.template
    together: dict[str, requirements.Requirement] = requirements.from_labels(template.metadata.labels)
    told: set[str] = set()
    for place, each in enumerate(template.spec.requirements):
        where = f"spec.template.spec.requirements[{place}] ({each.key})"
        found = list(_of_one_requirement(each))
        yield from (f"{where}: {problem}" for problem in found)
        if found:
            continue
        key, wanted = requirements.key_of(each.key), requirements.parse(each)
        together[key] = together.get(key, requirements.ANY).intersect(wanted) if key in together else wanted
        if together[key] == requirements.NEVER and key not in told:
            told.add(key)
            yield f"{where}: no value satisfies this and what else the pool asks of the label: change one of them"
        elif each.min_values and not together[key].complement and len(together[key].values) < each.min_values:
            left = len(together[key].values)
            yield f"{where}: minValues {each.min_values} cannot be met, as only {left} values are possible: lower it"


def _of_one_requirement(each: Requirement) -> Iterator[str]:
    if not _is_key(each.key):
        yield "the key is no label name"
    elif _is_restricted(each.key) or each.key == names.NODE_POOL_LABEL:
        yield "the label is restricted and cannot be required"
    if each.operator == requirements.IN and not each.values:
        yield "operator In needs at least one value"
    if each.operator in {requirements.IN, requirements.NOT_IN}:
        yield from (f"{value!r} is no label value" for value in each.values if not _is_value(value))
    try:
        requirements.parse(each)
    except RequirementError as error:
        yield str(error)


def _taints(pool: NodePool) -> Iterator[str]:
    spec = pool.spec.template.spec
    seen: dict[tuple[str, str], str] = {}
    lists: tuple[tuple[str, Iterable[Taint]], ...] = (("taints", spec.taints), ("startupTaints", spec.startup_taints))
    for field, taints in lists:
        for place, taint in enumerate(taints):
            where = f"spec.template.spec.{field}[{place}]"
            if not _is_key(taint.key):
                yield f"{where}: {taint.key!r} is no name of a taint"
            if not _is_value(taint.value):
                yield f"{where}: {taint.value!r} is no value of a taint"
            if taint.effect not in _EFFECTS:
                yield f"{where}: effect {taint.effect!r} is none of {', '.join(_EFFECTS)}"
            first = seen.setdefault((taint.key, taint.effect), where)
            if first != where:
                yield f"{where}: {taint.key}:{taint.effect} is listed twice, first as {first}: remove one"


def _durations(pool: NodePool) -> Iterator[str]:
    template = pool.spec.template.spec
    fields = (
        ("spec.template.spec.expireAfter", template.expire_after),
        ("spec.template.spec.terminationGracePeriod", template.termination_grace_period),
        ("spec.disruption.consolidateAfter", pool.spec.disruption.consolidate_after),
    )
    for where, text in fields:
        if text is None or (text == NEVER and not where.endswith("GracePeriod")):
            continue
        try:
            if Duration.parse(text).nanoseconds < 0:
                yield f"{where}: {text!r} is below zero"
        except DurationError as error:
            yield f"{where}: {error}"


def _limits(pool: NodePool) -> Iterator[str]:
    for name, quantity in pool.spec.limits.items():
        try:
            if amount_of(name, quantity) < 0:
                yield f"spec.limits.{name}: {quantity} is below zero"
        except QuantityError as error:
            yield f"spec.limits.{error}"


def _annotations(pool: NodePool) -> Iterator[str]:
    word = pool.metadata.annotations.get(names.NODE_LIMIT_MODE_ANNOTATION)
    if word is not None and word not in {HARD, SOFT}:
        yield f"metadata.annotations[{names.NODE_LIMIT_MODE_ANNOTATION}]: {word!r} is neither {HARD} nor {SOFT}"


def _is_key(text: str) -> bool:
    prefix, _, name = text.rpartition("/")
    return len(prefix) <= _PREFIX_CHARACTERS and len(name) <= _NAME_CHARACTERS and _KEY.fullmatch(text) is not None


def _is_value(text: str) -> bool:
    return len(text) <= _NAME_CHARACTERS and _VALUE.fullmatch(text) is not None


def _is_restricted(key: str) -> bool:
    if key == names.HOSTNAME_LABEL:
        return True
    return key != names.CAPACITY_TYPE_LABEL and key.partition("/")[0].endswith(names.KARPENTER) and "/" in key
