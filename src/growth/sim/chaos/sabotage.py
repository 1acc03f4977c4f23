"""Deliberate bugs, one for each invariant: a check that catches none is worth nothing.

Each is a patch of the product's code while a run lasts, or a wrapper at one of its ports; never a branch in the product.
Some need something in the world to work on: settings, objects or faults, which they bring along.
"""

import asyncio
import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from unittest import mock

import msgspec

from growth.api import names
from growth.api.clouds import MachineNotFound
from growth.api.core import CONFIG_MAP
from growth.api.kinds import Json
from growth.api.pods import POD
from growth.cluster.pools import Usage
from growth.cluster.state import State
from growth.controllers import drifting, fresh
from growth.controllers.collection.controller import Collection
from growth.controllers.decisions import Decisions
from growth.controllers.disruption import confirming, discouraging, executing, question
from growth.controllers.growth import releasing
from growth.controllers.lifecycle import decide
from growth.controllers.provisioning import booking, demand, passes
from growth.controllers.sizing import controller as sizing
from growth.controllers.termination.drains import Drained, Drains
from growth.controllers.termination.endings import Endings
from growth.controllers.vain import Ruling, Vain
from growth.kube.errors import NotFound
from growth.kube.events import Recorder
from growth.kube.informer import Informer
from growth.kube.lease import Elector
from growth.planning import occupants
from growth.planning.budgets import Allowance
from growth.planning.disruption import candidates, continuous, room, situating
from growth.planning.disruption import decide as deciding
from growth.ports import Clock
from growth.providers.kwok import records
from growth.providers.kwok.provider import KwokProvider
from growth.sim.network import NetworkApi
from growth.sim.scenario import manifests, oddities
from growth.sim.scenario.model import Event, Order, PodShape, Scenario

Apply = Callable[[], contextlib.AbstractContextManager[Any]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sabotage:
    """A bug. `breaks` is the invariant that must catch it; `faults`, where said, take the place of the order's."""

    breaks: str
    bug: str
    apply: Apply
    faults: str | None = None
    settings: Mapping[str, str] = dataclasses.field(default_factory=dict)
    objects: tuple[Json, ...] = ()
    events: tuple[Event, ...] = ()
    edit: Callable[[Json], Json] = lambda body: body
    hours: float = 0.5
    """As long as it takes to show."""

    def prepared(self, order: Order) -> Order:
        """The order with what the bug needs to show."""
        scenario: Scenario = msgspec.structs.replace(
            order.scenario,
            settings={**order.scenario.settings, **self.settings},
            objects=(*map(self.edit, order.scenario.objects), *self.objects),
            events=(*order.scenario.events, *self.events),
        )
        return dataclasses.replace(
            order, scenario=scenario, faults=order.faults if self.faults is None else self.faults
        )


@contextlib.contextmanager
def applied(name: str) -> Iterator[None]:
    """The bug of this name is in the product while the context lasts; none for an empty name."""
    with SABOTAGES[name].apply() if name else contextlib.nullcontext():
        yield


def prepared(order: Order) -> Order:
    """The order as its sabotage needs it. ValueError for a name that there is not."""
    if order.sabotage and order.sabotage not in SABOTAGES:
        raise ValueError(f"there is no sabotage {order.sabotage!r}; choose one of: {', '.join(SABOTAGES)}")
    return SABOTAGES[order.sabotage].prepared(order) if order.sabotage else order


def _replaced(*changes: tuple[object, str, Any]) -> Apply:
    @contextlib.contextmanager
    def apply() -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for target, name, value in changes:
                stack.enter_context(mock.patch.object(target, name, value))
            yield

    return apply


def _returns(value: Any) -> Callable[..., Any]:
    def always(*_: Any, **__: Any) -> Any:
        return value

    return always


def _answers(value: Any) -> Callable[..., Any]:
    async def always(*_: Any, **__: Any) -> Any:
        return value

    return always


# -- the bugs -----------------------------------------------------------------------------------------------------------------


def _another_name_each_time() -> Apply:
    """Machines are called by a number, not by their claim: a repeated purchase finds no first machine."""
    real, numbers = records.config_map, itertools.count(1)

    def config_map(record: Any, *, cluster: str) -> Json:
        body = real(record, cluster=cluster)
        body["metadata"]["name"] += f"-{next(numbers)}"
        return body

    return _replaced((KwokProvider, "_existing", _answers(None)), (records, "config_map", config_map))


async def _every_record(self: Any) -> list[Any]:
    listed = await self._api.list(CONFIG_MAP, namespace=self._namespace, labels=names.KWOK_MACHINE_LABEL)
    return list(listed.items)


async def _any_record(self: Any, claim: str) -> Any:
    try:
        return await self._api.get(CONFIG_MAP, records.record_name(claim), namespace=self._namespace)
    except NotFound:
        raise MachineNotFound(claim) from None


async def _delete_instead(self: Any, name: str, *, namespace: str, uid: str = "", **_: Any) -> None:
    await self.delete(POD, name, namespace=namespace, uid=uid)


async def _slow_list(self: Any) -> None:
    """The autoscaler's first list of nodes takes a minute."""
    if self.kind.plural in {"nodes", "nodeclaims"} and isinstance(self._api, NetworkApi):
        await asyncio.sleep(60.0)
    await _REAL_LIST(self)


def _is_whole(self: Any) -> Any:
    """The autoscaler's caches are never waited for."""
    return None if isinstance(self._api, NetworkApi) else _REAL_UNSYNCED(self)


_REAL_LIST: Final = Informer._list  # noqa: SLF001 - a patch of the product's inside
_REAL_UNSYNCED: Final = Informer.unsynced
_REAL_GET: Final = NetworkApi.get
_REAL_RECORD: Final = Decisions.record


async def _gone_at_once(self: Any, suspects: Any) -> Any:
    """Whatever the cloud does not list is gone, and nobody is asked again."""
    for claim in suspects:
        self._denials.deny(claim.metadata.uid)
    return suspects


async def _asks_again(self: Any, kind: Any, name: str, *, namespace: str = "") -> Any:
    for _ in range(60):
        await _REAL_GET(self, kind, name, namespace=namespace)
    return await _REAL_GET(self, kind, name, namespace=namespace)


def _forgets_some(pending: Any, marked: Any, sort: Any) -> Any:
    """Pods of one workload are never planned for."""
    return _REAL_RIPE([pod for pod in pending if not pod.name.startswith("forgotten")], marked, sort)


_REAL_RIPE: Final = demand.ripe


def _says_it_again(self: Any, spec: Any) -> bool:
    self._last.clear()
    self._before = {}
    return bool(_REAL_RECORD(self, spec))


def _lonely() -> tuple[Json, ...]:
    """A workload with a pool of its own: no other's machine will do."""
    taint = {"key": "lonely", "value": "true", "effect": "NoSchedule"}
    shape = PodShape(spec={"nodeSelector": {"lonely": "true"}, "tolerations": [{**taint, "operator": "Equal"}]})
    pool = manifests.node_pool("lonely", labels={"lonely": "true"}, taints=(taint,))
    return pool, manifests.deployment("forgotten", 2, shape)


def _huge_pod() -> Json:
    container = {"name": "main", "image": "simulated", "resources": {"requests": {"cpu": "5000"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "too-large", "namespace": "default"},
        "spec": {"containers": [container]},
    }


def _protected() -> Json:
    """Small pods that nobody may disturb, so many, and so far apart, that most machines have one."""
    apart = {
        "maxSkew": 1,
        "topologyKey": names.HOSTNAME_LABEL,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "protected"}},
    }
    shape = PodShape(
        cpu="100m",
        memory="64Mi",
        annotations={names.DO_NOT_DISRUPT_ANNOTATION: "true"},
        spec={"topologySpreadConstraints": [apart]},
    )
    return manifests.deployment("protected", 60, shape)


def _with_budget(body: Json, nodes: str) -> Json:
    """A NodePool with this budget; other objects as they are."""
    if body["kind"] != "NodePool":
        return body
    disruption = {**body["spec"].get("disruption", {}), "budgets": [{"nodes": nodes}]}
    return {**body, "spec": {**body["spec"], "disruption": disruption}}


def _consolidating(body: Json) -> Json:
    """A NodePool whose machines are to be as few and as cheap as can be; other objects as they are."""
    if body["kind"] != "NodePool":
        return body
    disruption = {**body["spec"].get("disruption", {}), "consolidationPolicy": "WhenEmptyOrUnderutilized"}
    return {**body, "spec": {**body["spec"], "disruption": disruption}}


def _hesitating(body: Json) -> Json:
    """The same, one machine at a time, and none any more after 25 minutes: those that were to go next then stay."""
    body = _consolidating(body)
    if body["kind"] != "NodePool":
        return body
    closed = {"nodes": "0", "schedule": "25 8 * * *", "duration": "23h"}  # worlds begin at 8:00
    disruption = {**body["spec"]["disruption"], "budgets": [{"nodes": "1"}, closed]}
    return {**body, "spec": {**body["spec"], "disruption": disruption}}


def _apart(name: str, pods: int) -> tuple[Json, ...]:
    """A NodePool that consolidates, and pods that only it has machines for: nothing else protects or fills them."""
    taint = {"key": name, "effect": "NoSchedule"}
    where = {"nodeSelector": {name: "true"}, "tolerations": [{"key": name, "operator": "Exists"}]}
    # A spot machine is not replaced by another.
    terms = manifests.asks(names.CAPACITY_TYPE_LABEL, "In", "on-demand")
    policy = "WhenEmptyOrUnderutilized"
    return (
        manifests.node_pool(name, taints=(taint,), labels={name: "true"}, requirements=(terms,), policy=policy),
        manifests.deployment(name, pods, PodShape(spec=where)),
    )


def _too_dear(*args: Any, **more: Any) -> Any:
    """Every machine seems to cost four times as much as it would cost to buy it."""
    node = _REAL_OWNED(*args, **more)
    return node if node.price is None else dataclasses.replace(node, price=4 * node.price)


_REAL_OWNED: Final = situating._owned  # noqa: SLF001 - a patch of the product's inside


def _spare_room() -> Json:
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": {"name": "more-room", "namespace": "default"},
        "spec": {"scalableRef": {"apiGroup": "apps", "kind": "Deployment", "name": "web"}, "replicas": 40},
    }


class _AwakeClock:
    """A clock whose boot time stands still while its machine is suspended."""

    def __init__(self, clock: Clock) -> None:
        self.now = clock.now
        self.monotonic = self.boot_time = clock.monotonic


def _elects_awake(self: Any, *args: Any, clock: Clock, **more: Any) -> None:
    _REAL_ELECTOR(self, *args, clock=_AwakeClock(clock), **more)


_REAL_ELECTOR: Final = Elector.__init__


def _warm_pool(**labels: str) -> Json:
    """A growth pool that keeps two machines without any load: no pod tolerates its taint."""
    types = [{"name": "c-2x-amd64-linux", "min": 2, "max": 4}]
    template = {"labels": labels, "taints": [{"key": "warm", "effect": "NoSchedule"}]}
    return {
        "apiVersion": "growth.dev/v1alpha1",
        "kind": "NodePool",
        "metadata": {"name": "warm"},
        "spec": {"serverTypes": types, "disruption": {"budgets": [{"nodes": "100%"}]}, "template": template},
    }


def _relabelled() -> Event:
    return Event(at="5m", do="patch", object=_warm_pool(team="b"))


SABOTAGES: Final[Mapping[str, Sabotage]] = {
    "forget-the-machine": Sabotage(
        breaks="leak",
        bug="a claim is let go without a word to the cloud",
        apply=_replaced((Endings, "_take_down", _answers(None))),
    ),
    "numbered-machines": Sabotage(
        breaks="one machine",
        bug="machines are named by a number and not by their claim",
        apply=_another_name_each_time(),
        faults="cloud-answer-lost=0.5",
    ),
    "whose-machines": Sabotage(
        breaks="foreign",
        bug="nobody looks which cluster a machine is of",
        apply=_replaced((KwokProvider, "_records", _every_record), (KwokProvider, "_record", _any_record)),
        faults="other-cluster=20",
    ),
    "no-budget": Sabotage(
        breaks="budget",
        bug="pools' budgets are not read",
        apply=_replaced((room, "allowance", _returns(Allowance(None)))),
        faults="none",
        edit=lambda body: _with_budget(body, "1"),
    ),
    "delete-pods": Sabotage(
        breaks="pdb",
        bug="pods are deleted and not evicted",
        apply=_replaced((NetworkApi, "evict", _delete_instead)),
        faults="deleted-by-hand=40,pdb-zero=20",
    ),
    "no-protection": Sabotage(
        breaks="do-not-disrupt",
        bug="the annotation do-not-disrupt is not read",
        apply=_replaced((occupants, "protection", _returns(occupants.UNPROTECTED))),
        faults="deleted-by-hand=60",
        objects=(_protected(),),
    ),
    "no-drain": Sabotage(
        breaks="drain",
        bug="a Node counts as drained at once",
        apply=_replaced((Drains, "step", _answers(Drained(None)))),
        faults="deleted-by-hand=20",
    ),
    "hasty-start": Sabotage(
        breaks="unsynced",
        bug="a cache says that it is whole before its first list has come",
        apply=_replaced((Informer, "unsynced", _is_whole), (Informer, "_list", _slow_list)),
        faults="crash=6",
    ),
    "silence-is-none": Sabotage(
        breaks="unknown",
        bug="what a list does not show is taken for gone",
        apply=_replaced(
            (Collection, "_gone", _gone_at_once),
            (fresh, "nodes_of", _answers([])),
        ),
        faults="list-partial=1",
    ),
    "buy-it-again": Sabotage(
        breaks="in vain",
        bug="nobody looks what became of machines that were bought for the same pods",
        apply=_replaced((Vain, "looked", _returns(Ruling())), (Vain, "gave_up", _answers(None))),
        faults="stray-taint=1",
    ),
    "never-mind-the-pods": Sabotage(
        breaks="replacement",
        bug="every node counts as empty",
        apply=_replaced(
            (candidates, "empty", _returns(True)),
            (deciding, "empty", _returns(True)),
            (question, "empty", _returns(True)),
        ),
        faults="none",
    ),
    "count-only-awake": Sabotage(
        breaks="lease",
        bug="the write gate reads the monotonic clock, which stands still while the machine is suspended",
        apply=_replaced((Elector, "__init__", _elects_awake)),
        faults="sleep=60",
    ),
    "forget-what-is-coming": Sabotage(
        breaks="limit",
        bug="what a pool uses already is not counted",
        apply=_replaced((Usage, "of", _returns({}))),
        faults="none",
    ),
    "free-of-charge": Sabotage(
        breaks="cap",
        bug="what runs already is not counted against the cap of money",
        apply=_replaced((booking.Prices, "of", _returns(0))),
        faults="none",
        settings={"maxHourly": "1"},
    ),
    "ask-sixty-times": Sabotage(
        breaks="calls",
        bug="every question is asked sixty times",
        apply=_replaced((NetworkApi, "get", _asks_again)),
        faults="none",
    ),
    "forget-some-pods": Sabotage(
        breaks="bound",
        bug="some pods are never planned for",
        apply=_replaced((passes, "ripe", _forgets_some)),
        faults="none",
        objects=_lonely(),
    ),
    "keep-the-finalizer": Sabotage(
        breaks="ended",
        bug="a claim's finalizer is never taken off",
        apply=_replaced((Endings, "_release_claim", _answers(None))),
        faults="none",
    ),
    "remove-the-spare": Sabotage(
        breaks="calm",
        bug="machines that keep spare room are removed as empty",
        apply=_replaced((State, "kept_for_buffer", _returns(False)), (State, "nominated", _returns(False))),
        faults="none",
        objects=(_spare_room(),),
        hours=1.0,
    ),
    "repeat-yourself": Sabotage(
        breaks="idle",
        bug="every pass writes its Decision, whatever the last one said",
        apply=_replaced((Decisions, "record", _says_it_again)),
        faults="none",
        objects=(_huge_pod(),),  # nobody can ever help it, and it is looked at again and again
    ),
    "say-nothing": Sabotage(
        breaks="reasons",
        bug="neither events nor Decisions are written",
        apply=_replaced((Recorder, "event", _returns(None)), (Decisions, "record", _returns(False))),
        faults="none",
        objects=(_huge_pod(),),
    ),
    "buy-no-replicas": Sabotage(
        breaks="sized",
        bug="a static pool lacks nothing, whatever it has",
        apply=_replaced((sizing, "missing", _returns(0))),
        faults="none",
        objects=(oddities.static_pool(2, name="replicas"),),
    ),
    "let-go-of-claims": Sabotage(
        breaks="settled",
        bug="a finalizer that somebody took off a claim is not put back",
        apply=_replaced((decide, "held", _returns(True))),
        faults="finalizer-by-hand=600",
    ),
    "once-marked-always-marked": Sabotage(
        breaks="settled",
        bug="who was once the next to go stays marked for ever",
        apply=_replaced((discouraging, "LINGERS_SECONDS", float("inf"))),
        faults="none",
        edit=_hesitating,
        hours=1.0,
    ),
    "not-waiting-for-it": Sabotage(
        breaks="replacement",
        bug="what replaces a machine counts as up from the start, and nobody asks where its pods are to go",
        apply=_replaced(
            (executing, "is_true", _returns(True)),
            (confirming, "is_true", _returns(True)),
            (question, "_housed", _returns(("", frozenset()))),
        ),
        faults="price-change=60",
        edit=_consolidating,
    ),
    "never-mind-their-protection": Sabotage(
        breaks="undisturbed",
        bug="whether the pods of a node may be asked to leave is not looked at",
        apply=_replaced((candidates, "_of_pods", _returns(()))),
        faults="none",
        objects=(_protected(),),
        edit=_consolidating,
    ),
    "round-and-round": Sabotage(
        breaks="circle",
        bug="what runs seems dearer than the same bought anew, and nobody knows what was given up for it",
        apply=_replaced((situating, "_owned", _too_dear), (situating, "given_up", _returns(()))),
        faults="none",
        objects=_apart("restless", 3),
        hours=1.0,
    ),
    "heed-no-minimum": Sabotage(
        breaks="warm",
        bug="the minima of growth pools are not counted where machines are moved away",
        apply=_replaced(
            (continuous, "_beyond", _returns({})),
            (
                releasing,
                "released_of",
                lambda _pool, wanted, staying: tuple(name for name in wanted if name in staying),
            ),
        ),
        faults="none",
        objects=(_warm_pool(),),
        events=(_relabelled(),),
    ),
    "never-renewed": Sabotage(
        breaks="renewed",
        bug="no machine of a growth pool is found to have drifted",
        apply=_replaced((drifting, "drifted_in_growth", _returns(""))),
        faults="none",
        objects=(_warm_pool(),),
        events=(_relabelled(),),
    ),
}
