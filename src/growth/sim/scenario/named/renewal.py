"""Named worlds of machines that do not stay: broken, too old, drifted, replaced by cheaper ones."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from growth.api import names
from growth.api.kinds import Json
from growth.providers.kwok.records import NEVER_READY_ANNOTATION
from growth.sim.scenario import manifests, oddities
from growth.sim.scenario.manifests import asks, cores
from growth.sim.scenario.model import Burst, Event, PodShape, Rollout, Scenario, Waves
from growth.sim.scenario.named.words import at, named, of, the_claim, the_node, the_pool
from growth.sim.scenario.oddities import claim, spec_of, static_pool

LONG_AGO: Final = "2030-01-07T07:00:00Z"
NEVER: Final = "Never"


def _marked(**annotations: str | None) -> Json:
    return {"annotations": annotations}


# -- broken ------------------------------------------------------------------------------------------------------------------


def _breaks(when: str, name: str, *, since: str = LONG_AGO) -> Iterator[Event]:
    """The kubelet says that it is not ready, and nobody plays it any more."""
    yield at(when, "patch", the_node(name, metadata=_marked(**{NEVER_READY_ANNOTATION: "true"})))
    yield at(when, "patch", {**the_node(name), "status": {"conditions": [_ready("False", since)]}}, status=True)


def _recovers(when: str, name: str) -> Iterator[Event]:
    yield at(when, "patch", the_node(name, metadata=_marked(**{NEVER_READY_ANNOTATION: None})))


def _ready(status: str, since: str) -> Json:
    return {**oddities.condition("Ready", status), "lastTransitionTime": since, "lastHeartbeatTime": since}


def _claims_of(pool: str, number: int) -> Iterator[Json]:
    """Made by hand for the pool: their names are known."""
    for each in range(number):
        made = claim(f"{pool}-{each}")
        made["metadata"]["labels"] = {names.NODE_POOL_LABEL: pool}
        yield made


def _broken_machines() -> Scenario:
    """Nodes that stay broken are taken down, unless people, budgets or their number speak against it."""
    unreadable = ({"nodes": "1", "schedule": "0 0 31 2 *", "duration": "10m"},)
    pools = {
        "sound": ({"nodes": "100%"},),
        "closed": ({"nodes": "0"},),
        "odd": unreadable,
        "many": ({"nodes": "100%"},),
    }
    deadline = names.TERMINATION_TIMESTAMP_ANNOTATION
    spared = names.DO_NOT_REPAIR_ANNOTATION
    return Scenario(
        hours=0.75,
        objects=(
            *(
                manifests.node_pool(name, requirements=(cores("2"),), budgets=budgets, consolidate_after=NEVER)
                for name, budgets in pools.items()
            ),
            *_claims_of("sound", 9),
            *_claims_of("closed", 2),
            *_claims_of("odd", 2),
            *_claims_of("many", 2),
            claim("alone"),
        ),
        workloads=(Burst(name="app", pods=4, at="1m", lasts="10m"),),
        events=(
            *_breaks("2m", "sound-0"),
            at("2m30s", "patch", the_node("sound-1", metadata=_marked(**{spared: "true"}))),
            *_breaks("2m40s", "sound-1"),
            at("2m30s", "patch", the_node("sound-2", metadata=_marked(**{names.PAUSED_ANNOTATION: "true"}))),
            at("4m", "patch", the_node("sound-1", metadata=_marked(**{spared: None}))),
            *_breaks("5m", "sound-2"),
            at("6m", "patch", the_node("sound-2", metadata=_marked(**{names.PAUSED_ANNOTATION: None}))),
            *_breaks("7m", "sound-3", since="2030-01-07T08:06:50Z"),
            *_recovers("8m", "sound-3"),
            *(
                at("8m", "patch", the_claim(f"sound-{each}", metadata=_marked(**{deadline: text})))
                for each, text in ((4, LONG_AGO), (5, "soon"), (6, "2031-01-01T00:00:00Z"))
            ),
            *(at("9m", "patch", the_node(f"sound-{each}", metadata={"labels": {"seen": "1"}})) for each in (4, 5, 6)),
            at("9m30s", "patch", the_claim("sound-6", metadata=_marked(**{deadline: None}))),
            *_breaks("2m", "closed-0"),
            *_breaks("2m", "odd-0"),
            *_breaks("2m", "many-0"),
            *_breaks("2m", "many-1"),
            *_recovers("6m", "many-1"),
            *_breaks("10m", "alone"),
            at("9m", "patch", spec_of("closed", disruption={"budgets": [{"nodes": "100%"}]})),
            at("9m", "patch", spec_of("odd", disruption={"budgets": [{"nodes": "1", "reasons": ["Unhealthy"]}]})),
            *(
                at(
                    "16m",
                    "patch",
                    spec_of(name, disruption={"consolidateAfter": "20s", "budgets": [{"nodes": "100%"}]}),
                )
                for name in pools
            ),
        ),
        settings={"nodeRepair": True},
    )


# -- too old, or no longer what is asked for ------------------------------------------------------------------------------------


def _ages() -> Scenario:
    """Machines that expire, and machines that are no longer what their pool asks for, until it asks for it again."""
    fixed = {
        "beside": static_pool(2, limit=3, name="beside"),
        "in-place": static_pool(2, limit=2, name="in-place"),
        "soft": static_pool(2, limit=2, mode="Soft", name="soft"),
        "free": static_pool(2, name="free"),
    }
    fixed["free"]["spec"]["disruption"]["budgets"] = [{"nodes": "0", "reasons": ["Drifted"]}, {"nodes": "2"}]
    old = manifests.node_pool("old", requirements=(cores("4"), of("old")), consolidate_after="30s")
    old["spec"]["template"]["spec"]["expireAfter"] = "4m"
    drifting = manifests.node_pool(
        "drifting",
        requirements=(cores("2", "4"), of("drifting")),
        budgets=({"nodes": "1"}, {"nodes": "0", "schedule": "0 9 * * *", "duration": "1h"}),
        consolidate_after="30s",
    )
    return Scenario(
        hours=0.75,
        objects=(*fixed.values(), old, drifting),
        workloads=(
            Rollout(name="aged", replicas=5, every="30m", pod=_on("old")),
            Rollout(name="drifted", replicas=5, every="30m", pod=_on("drifting")),
        ),
        events=(
            at("3m", "patch", oddities.paused("old", "true")),
            at("7m", "patch", oddities.paused("old", "false")),
            *(at("4m", "patch", spec_of(name, template=_labelled("2"))) for name in fixed),
            at("4m", "patch", spec_of("drifting", template=_labelled("2"))),
            # Asked for and taken back before anybody could act on it.
            at("10m", "patch", spec_of("drifting", template=_asking("2"))),
            at("10m3s", "patch", spec_of("drifting", template=_asking("2", "4"))),
            at("12m", "patch", spec_of("free", disruption={"budgets": [{"nodes": "1"}]})),
            at("14m", "patch", spec_of("beside", replicas=3)),
            at("15m", "patch", spec_of("soft", replicas=1)),
            at("16m", "patch", spec_of("old", template={"spec": {"expireAfter": NEVER}})),
            at(
                "17m",
                "patch",
                the_pool("drifting", metadata=_marked(**{names.NODE_POOL_HASH_VERSION_ANNOTATION: "v1"})),
            ),
            at("18m", "delete", the_pool("in-place")),
        ),
    )


def _labelled(number: str) -> Json:
    return {"metadata": {"labels": {"example.com/round": number}}}


def _asking(*sizes: str) -> Json:
    linux = asks(names.OS_LABEL, "In", "linux")
    return {"spec": {"requirements": [linux, cores(*sizes), of("drifting")]}}


def _on(pool: str, cpu: str = "1", **marks: str) -> PodShape:
    return PodShape(cpu=cpu, memory="256Mi", annotations=marks, spec={"nodeSelector": {"example.com/of": pool}})


# -- corrected --------------------------------------------------------------------------------------------------------------


def _overlays() -> Scenario:
    """Prices and capacities corrected by people, rightly, wrongly and against each other."""
    return Scenario(
        hours=0.5,
        objects=(
            manifests.node_pool(
                "default",
                requirements=(cores("2", "4", "8"),),
                consolidate_after="20s",
                policy="WhenEmptyOrUnderutilized",
            ),
            _overlay("dearer", cores("2"), priceAdjustment="+20%"),
            _overlay("cheaper", cores("8"), price="0.01", weight=5),
            _overlay("against-it", cores("8"), price="0.02", weight=5),
            _overlay("gadgets", cores("4"), capacity={"example.com/gadget": "2"}),
            _overlay("of-nothing", cores("3000"), price="1"),
            _overlay("never", cores("2"), cores("4"), price="1"),
        ),
        workloads=(
            Waves(name="web", low=1, high=12, period="8m", steps=2, pod=PodShape(cpu="900m")),
            Burst(name="gadget", pods=3, at="1m", lasts="6m", pod=_with_gadget()),
        ),
        events=(
            at("4m", "delete", _overlay("against-it")),
            at("7m", "patch", _overlay("dearer", cores("2"), priceAdjustment="-30%")),
            at("9m", "delete", _overlay("cheaper")),
            at("11m", "patch", _overlay("never", cores("2"), price="1", weight=9)),
        ),
    )


def _overlay(name: str, *requirements: Json, **spec: Any) -> Json:
    return named("karpenter.sh/v1alpha1", "NodeOverlay", name, spec={"requirements": list(requirements), **spec})


def _with_gadget() -> PodShape:
    resources = {"requests": {"cpu": "100m", "example.com/gadget": "1"}, "limits": {"example.com/gadget": "1"}}
    return PodShape(spec={"containers": [{"name": "main", "image": "simulated", "resources": resources}]})


RENEWAL: Final[Mapping[str, Scenario]] = {
    "broken machines": _broken_machines(),
    "ages": _ages(),
    "overlays": _overlays(),
}
