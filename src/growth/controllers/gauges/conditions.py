"""Conditions of claims, pools, Nodes and node classes as metrics, and how long objects take to go.

The names and labels are those that Karpenter's users know from its status controllers. Transitions are what the watch
shows: of two that follow each other quickly only the outcome is seen.
"""

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from growth.api.karpenter import NODE_CLAIM, NODE_POOL
from growth.api.kinds import Kind
from growth.api.meta import ObjectMeta
from growth.api.nodes import NODE
from growth.controllers.environment import Environment
from growth.kube.informer import Informer
from growth.kube.store import Change, Changed, Deleted
from growth.telemetry.metrics import Counter, Declaration, Gauge, Histogram

_ONE: Final = ("namespace", "name", "group", "kind")
_EACH: Final = (*_ONE, "type", "status", "reason")

COUNT: Final = Gauge("operator_status_condition_count", "1 for every condition of every object.", labels=_EACH)
CURRENT: Final = Gauge(
    "operator_status_condition_current_status_seconds", "How long a condition has had its status.", labels=_EACH
)
TRANSITIONS: Final = Counter(
    "operator_status_condition_transitions_total",
    "Changes of conditions, by what they changed to.",
    labels=("group", "kind", "type", "status", "reason"),
)
LASTED: Final = Histogram(
    "operator_status_condition_transition_seconds",
    "How long conditions had had a status when it changed.",
    labels=("group", "kind", "type", "status"),
)
TERMINATING: Final = Gauge(
    "operator_termination_current_time_seconds", "How long an object has been on its way out.", labels=_ONE
)
TERMINATED: Final = Histogram(
    "operator_termination_duration_seconds", "How long objects took from deletion to gone.", labels=("group", "kind")
)
METRICS: Final[tuple[Declaration, ...]] = (COUNT, CURRENT, TRANSITIONS, LASTED, TERMINATING, TERMINATED)

Series = Iterator[tuple[Mapping[str, str], float]]


class _Condition(Protocol):
    """A Node's or any other object's."""

    @property
    def type(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def last_transition_time(self) -> dt.datetime | None: ...


def declare(env: Environment) -> None:
    state = env.state
    followed: dict[Kind[Any], Informer[Any, Any]] = {
        NODE_CLAIM: state.claims,
        NODE_POOL: state.pools,
        NODE: state.nodes,
        **state.node_classes,
    }
    for kind, informer in followed.items():
        informer.subscribe(_observer(env, kind))

    def objects() -> Iterator[tuple[dict[str, str], Any]]:
        for kind, informer in followed.items():
            for item in tuple(informer.store):
                yield _labels(kind, item.metadata), item

    def counts() -> Series:
        for labels, item in objects():
            for each in item.status.conditions:
                yield {**labels, **_of(each)}, 1.0

    def ages() -> Series:
        now = env.clock.now()
        for labels, item in objects():
            for each in item.status.conditions:
                if each.last_transition_time is not None:
                    yield {**labels, **_of(each)}, (now - each.last_transition_time).total_seconds()

    def going() -> Series:
        now = env.clock.now()
        for kind, informer in followed.items():
            for item in [each for each in informer.store if each.metadata.deletion_timestamp is not None]:
                yield _labels(kind, item.metadata), (now - item.metadata.deletion_timestamp).total_seconds()

    env.metrics.read(COUNT, counts)
    env.metrics.read(CURRENT, ages)
    env.metrics.read(TERMINATING, going)


def _observer(env: Environment, kind: Kind[Any]) -> Callable[[Change[Any]], None]:
    """Counts what changes from now on; what is there already is no transition."""
    told = {"group": kind.group, "kind": kind.kind}

    def observe(news: Change[Any]) -> None:
        if isinstance(news, Deleted):
            deleted = news.old.metadata.deletion_timestamp
            if deleted is not None:
                seconds = max(0.0, (env.clock.now() - deleted).total_seconds())
                env.metrics.observe(TERMINATED, seconds, **told)
            return
        before: dict[str, _Condition] = {}
        if isinstance(news, Changed):
            before = {each.type: each for each in news.old.status.conditions}
        elif not env.state.synced:
            return
        for each in _changed(before, news.new.status.conditions):
            env.metrics.add(TRANSITIONS, 1, **told, **_of(each))
            old = before.get(each.type)
            if old is not None and old.last_transition_time is not None and each.last_transition_time is not None:
                lasted = max(0.0, (each.last_transition_time - old.last_transition_time).total_seconds())
                env.metrics.observe(LASTED, lasted, **told, type=old.type, status=old.status)

    return observe


def _changed(before: Mapping[str, _Condition], now: Sequence[_Condition]) -> Iterator[_Condition]:
    for each in now:
        old = before.get(each.type)
        if old is None or old.status != each.status:
            yield each


def _labels(kind: Kind[Any], metadata: ObjectMeta) -> dict[str, str]:
    return {"namespace": metadata.namespace, "name": metadata.name, "group": kind.group, "kind": kind.kind}


def _of(condition: _Condition) -> dict[str, str]:
    return {"type": condition.type, "status": condition.status, "reason": condition.reason}
