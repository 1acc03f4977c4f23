"""What a server would check of an object before anybody plans with it."""

import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from growth.api.crds.structural import root_schema
from growth.api.kinds import Json, Kind
from growth.api.meta import LabelSelector, ResourceList
from growth.api.placement import NodeSelectorTerm
from growth.api.pods import Container, PodSpec
from growth.api.policy import PodDisruptionBudgetSpec
from growth.kube.memory.custom import validation
from growth.kube.memory.custom.schema import Schema
from growth.units.errors import QuantityError
from growth.units.resources import amount_of

# How many faults one error names; the rest follows when these are mended.
SHOWN: Final = 3

# No field of a server's is wider.
_LARGEST: Final = (1 << 63) - 1
_PERCENT: Final = re.compile("0*(100|[0-9]{1,2})%")
_LABEL_SELECTORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
_SELECTORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")


@functools.cache
def _schema(kind: Kind[Any]) -> Schema:
    return Schema(root_schema(kind.type), root=True)


def faults_of(kind: Kind[Any], body: Json) -> Iterator[tuple[str, str]]:
    """(field, reason) for all that the kind's schema and rules refuse. Fills in the defaults of `body`, as servers do."""
    schema = _schema(kind)
    for part in ("metadata", "spec", "status"):
        if body.get(part) is None:
            body.pop(part, None)
    schema.fill(body)
    for error in validation.errors(schema, body):
        if error is not validation.NOT_CHECKED:
            yield error.field, error.detail


def unknown_fields(kind: Kind[Any], body: Json) -> list[str]:
    """The fields that a server would drop, which often is a word misspelled; removes them."""
    dropped: list[str] = []
    _schema(kind).prune(body, "", dropped)
    return dropped


def number_faults(given: object, path: str) -> Iterator[tuple[str, str]]:
    """(field, reason) for every number that is larger than any that a server takes."""
    match given:
        case dict():
            for name, each in given.items():
                yield from number_faults(each, f"{path}.{name}")
        case list() | tuple():
            for index, each in enumerate(given):
                yield from number_faults(each, f"{path}[{index}]")
        case int() if not -_LARGEST <= given <= _LARGEST:
            yield path, "is more than 64 bits hold"
        case msgspec.Struct():
            yield from number_faults(msgspec.to_builtins(given), path)
        case _:
            return


def selector_faults(selector: LabelSelector | None, path: str) -> Iterator[tuple[str, str]]:
    """(field, reason) for what no server takes as a selector of labels."""
    for index, each in enumerate(selector.match_expressions if selector is not None else ()):
        below = f"{path}.matchExpressions[{index}]"
        if each.operator not in _LABEL_SELECTORS:
            yield f"{below}.operator", f"{each.operator} is none of {', '.join(_LABEL_SELECTORS)}"
        elif each.operator in {"In", "NotIn"} and not each.values:
            yield f"{below}.values", f"operator {each.operator} needs at least one value"


def budget_faults(spec: PodDisruptionBudgetSpec, path: str) -> Iterator[tuple[str, str]]:
    """(field, reason) for what no server takes as a PodDisruptionBudget: it would protect nothing, or everything."""
    if spec.min_available is not None and spec.max_unavailable is not None:
        yield path, "minAvailable and maxUnavailable cannot be both set: keep one of them"
    for name, value in (("minAvailable", spec.min_available), ("maxUnavailable", spec.max_unavailable)):
        if isinstance(value, int) and value < 0:
            yield f"{path}.{name}", f"{value} is less than nothing"
        elif isinstance(value, str) and not _PERCENT.fullmatch(value):
            yield f"{path}.{name}", f"{value!r} is neither a whole number nor a percentage from 0% to 100%"
    yield from selector_faults(spec.selector, f"{path}.selector")


def spec_faults(spec: PodSpec, path: str) -> Iterator[tuple[str, str]]:
    """(field, reason) for what planning could not make sense of in a pod's spec."""
    for name, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for index, container in enumerate(containers):
            yield from _container_faults(container, f"{path}.{name}[{index}].resources")
    yield from _quantity_faults(spec.overhead, f"{path}.overhead")
    if spec.resources is not None:
        yield from _quantity_faults(spec.resources.requests, f"{path}.resources.requests")
    for index, toleration in enumerate(spec.tolerations):
        if toleration.operator not in {"", "Equal", "Exists"}:
            yield f"{path}.tolerations[{index}].operator", f"{toleration.operator} is none of Equal, Exists"
    for index, spread in enumerate(spec.topology_spread_constraints):
        below = f"{path}.topologySpreadConstraints[{index}]"
        if spread.max_skew < 1:
            yield f"{below}.maxSkew", f"{spread.max_skew} must be at least 1"
        if not spread.topology_key:
            yield f"{below}.topologyKey", "is missing: name the label whose values are the domains"
        if spread.when_unsatisfiable not in {"DoNotSchedule", "ScheduleAnyway"}:
            yield f"{below}.whenUnsatisfiable", f"{spread.when_unsatisfiable} is none of DoNotSchedule, ScheduleAnyway"
    affinity = spec.affinity.node_affinity if spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    below = f"{path}.affinity.nodeAffinity"
    for index, term in enumerate(required.node_selector_terms if required else ()):
        place = f"{below}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[{index}]"
        yield from _term_faults(term, place)
    for index, each in enumerate(affinity.preferred_during_scheduling_ignored_during_execution if affinity else ()):
        place = f"{below}.preferredDuringSchedulingIgnoredDuringExecution[{index}].preference"
        yield from _term_faults(each.preference, place)


def _term_faults(term: NodeSelectorTerm, path: str) -> Iterator[tuple[str, str]]:
    for index, each in enumerate(term.match_expressions):
        below = f"{path}.matchExpressions[{index}]"
        if each.operator not in _SELECTORS:
            yield f"{below}.operator", f"{each.operator} is none of {', '.join(_SELECTORS)}"
        elif each.operator in {"In", "NotIn"} and not each.values:
            yield f"{below}.values", f"operator {each.operator} needs at least one value"
        elif each.operator in {"Gt", "Lt"} and not (len(each.values) == 1 and _is_integer(each.values[0])):
            yield f"{below}.values", f"operator {each.operator} needs exactly one value, a whole number"


def _is_integer(text: str) -> bool:
    return text.removeprefix("-").isdecimal()


def _container_faults(container: Container, path: str) -> Iterator[tuple[str, str]]:
    requests, limits = container.resources.requests, container.resources.limits
    found = [*_quantity_faults(requests, f"{path}.requests"), *_quantity_faults(limits, f"{path}.limits")]
    yield from found
    if found:
        return
    for name, quantity in requests.items():
        if name in limits and amount_of(name, quantity) > amount_of(name, limits[name]):
            yield f"{path}.requests.{name}", f"{quantity} is more than the limit {limits[name]}"


def _quantity_faults(given: ResourceList, path: str) -> Iterator[tuple[str, str]]:
    for name, quantity in given.items():
        try:
            amount = amount_of(name, quantity)
        except QuantityError as error:
            yield f"{path}.{name}", str(error).removeprefix(f"{name}: ")
            continue
        if amount < 0:
            yield f"{path}.{name}", f"{quantity} is less than nothing"


def quantity_faults(lists: Mapping[str, ResourceList]) -> Iterator[tuple[str, str]]:
    """(field, reason) for every quantity that is none; by the path of the list that it stands in."""
    for path, given in lists.items():
        yield from _quantity_faults(given, path)
