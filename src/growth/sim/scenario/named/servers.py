"""Named worlds of growth.dev: pools of server types, requests for machines and requests for their removal."""

from collections.abc import Mapping
from typing import Any, Final

from growth.api import names
from growth.api.growthpools import DEPROVISIONING, EMPTY, NOT_READY, OVER_LIMIT, UNDERUTILIZED
from growth.api.kinds import Json
from growth.sim.scenario import manifests
from growth.sim.scenario.model import Burst, PodShape, Scenario, Waves
from growth.sim.scenario.named.words import at, cloud, named, the_claim, the_node
from growth.sim.scenario.oddities import claim, node_class_says, pod
from growth.sim.world.nodes import AGENT_TAINT

GROWTH: Final = "growth.dev/v1alpha1"
SERVERS: Final = "servers"
TWO, FOUR, EIGHT = "c-2x-amd64-linux", "c-4x-amd64-linux", "c-8x-amd64-linux"
PAUSED: Final[Json] = {"annotations": {names.PAUSED_ANNOTATION: "true"}}
NOT_PAUSED: Final[Json] = {"annotations": {names.PAUSED_ANNOTATION: None}}
ON_SERVERS: Final[Json] = {"nodeSelector": {names.POOL_LABEL: SERVERS}}


def _servers(name: str = SERVERS, /, *, most: Mapping[str, int], **spec: Any) -> Json:
    types = [{"name": each, "max": number} for each, number in most.items()]
    return named(GROWTH, "NodePool", name, spec={"serverTypes": types, "scaleDownAfter": "30s", **spec})


def _the_servers(name: str = SERVERS, /, **change: Any) -> Json:
    return named(GROWTH, "NodePool", name, **change)


def _request(name: str, *, pool: str = SERVERS, offering: str = f"kwok-{TWO}", **metadata: Any) -> Json:
    return named(GROWTH, "NodeRequest", name, metadata=metadata, spec={"pool": pool, "targetOffering": offering})


def _the_request(name: str, **change: Any) -> Json:
    return named(GROWTH, "NodeRequest", name, **change)


def _removal(name: str, reason: str, **of: str) -> Json:
    return named(GROWTH, "NodeRemovalRequest", name, spec={"reason": reason, **of})


def _the_removal(name: str, **change: Any) -> Json:
    return named(GROWTH, "NodeRemovalRequest", name, **change)


def _shape(cpu: str, **marks: str) -> PodShape:
    return PodShape(cpu=cpu, memory="256Mi", annotations=marks, spec=ON_SERVERS)


# -- what cannot be had -----------------------------------------------------------------------------------------------------


def _short_of_servers() -> Scenario:
    """The cloud has none of what is asked for, then some, then none again; pods wait, are left out and come back."""
    marked = pod("marked", **ON_SERVERS, containers=_asking("2500m"))
    marked["metadata"]["annotations"] = {names.BACK_OFF_ANNOTATION: "2030-01-07T07:59:00Z"}
    misspelt = pod("misspelt", **ON_SERVERS, containers=_asking("400"))
    misspelt["metadata"]["annotations"] = {names.BACK_OFF_ANNOTATION: "a while ago"}
    return Scenario(
        hours=0.75,
        objects=(
            _servers(most={TWO: 5, FOUR: 2}),
            marked,
            misspelt,
            cloud(),
        ),
        workloads=(
            Burst(name="small", pods=5, at="30s", lasts="20m", pod=_shape("900m")),
            Burst(name="big", pods=3, at="40s", lasts="20m", pod=_shape("2700m")),
            Burst(name="all", pods=2, at="50s", lasts="21m", pod=_shape("300")),
            Burst(name="anywhere", pods=1, at="50s", lasts="4m", pod=PodShape(cpu="1")),
            Burst(name="again", pods=4, at="11m", lasts="10m", pod=_shape("1500m")),
        ),
        events=(
            at("1s", "patch", cloud(noCapacity="*/*/*")),
            at("5m", "crash", {}),
            at("7m", "patch", cloud(noCapacity=f"{FOUR}/*/*")),
            at("10m", "patch", cloud(noCapacity="*/*/*")),
            at("15m", "patch", _the_servers(spec={"limits": {"nodes": 12}})),
            at("16m", "patch", cloud(noCapacity=None)),
            at("19m", "patch", _the_servers(spec={"serverTypes": [{"name": TWO, "max": 7}, {"name": FOUR, "max": 6}]})),
            at(
                "4m",
                "patch",
                named("v1", "Pod", "misspelt", namespace="default", metadata={"labels": {"app": "other"}}),
            ),
            *(at("25m", "delete", named("v1", "Pod", each, namespace="default")) for each in ("marked", "misspelt")),
        ),
        settings={
            "unplaceablePasses": 2,
            "backOff": "3s",
            "backOffCeiling": "10s",
            "backOffRecheck": "3m",
            "unmetTTL": "70s",
            "refusedTTL": "30s",
        },
    )


def _asking(cpu: str) -> list[Json]:
    return [{"name": "main", "image": "simulated", "resources": {"requests": {"cpu": cpu}}}]


# -- requests ---------------------------------------------------------------------------------------------------------------


def _late_servers() -> Scenario:
    """Requests that people make: fulfilled, late, never, for what there is not, and taken back."""
    resting = _servers("resting", most={TWO: 3})
    return Scenario(
        hours=0.75,
        objects=(
            _servers(most={TWO: 12, FOUR: 0}, scaleDownAfter="1h"),
            {**resting, "metadata": {**resting["metadata"], **PAUSED}},
            cloud(),
            claim("taken"),
            *(_request(name) for name in ("taken", "late", "dull", "gone", "over", "broken", "plain")),
            _request("one-with-a-name-that-is-longer-than-any-label-of-a-node-could-ever-be"),
            _request("of-nothing", pool="nothing"),
            _request("unsold", offering="kwok-none-such"),
            _request("elsewhere", offering="hetzner-cx22"),
            _request("unlisted", offering=f"kwok-{EIGHT}"),
            _request("too-many", offering=f"kwok-{FOUR}"),
            _request("of-resting", pool="resting"),
            _request("held", finalizers=["example.com/held"]),
        ),
        workloads=(Burst(name="app", pods=3, at="2m", lasts="6m", pod=_shape("900m")),),
        events=(
            at("1s", "patch", cloud(neverRegister="late*", neverReady="dull*")),
            at("45s", "delete", the_claim("gone")),
            at("3m", "patch", {**_the_request("over"), "status": {"phase": DEPROVISIONING}}, status=True),
            at("3m", "delete", _the_request("held")),
            at("4m", "patch", _the_request("held", metadata={"finalizers": None})),
            at("4m", "patch", _the_servers("resting", metadata=NOT_PAUSED)),
            at("4m30s", "patch", node_class_says("False"), status=True),
            at("4m35s", "create", _request("classless")),
            at("5m30s", "delete", the_claim("taken")),
            at("7m", "patch", node_class_says("True"), status=True),
            at("8m", "delete", the_claim("plain")),
            at("9m", "patch", cloud(neverRegister=None, neverReady=None)),
            at("10m", "delete", _the_servers("resting")),
            *(at("12m", "delete", _the_request(each)) for each in ("of-nothing", "unsold", "elsewhere")),
            at("14m", "patch", _the_servers(spec={"scaleDownAfter": "20s"})),
        ),
        settings={"readinessWait": "2m", "readyTTL": "3m", "launchTTL": "2m"},
    )


# -- removals ---------------------------------------------------------------------------------------------------------------


def _stubborn_servers() -> Scenario:
    """Removals that the cloud refuses or does not carry out until people must look, and those that people ask for."""
    own = {"nodeSelector": {names.POOL_LABEL: SERVERS, "example.com/own": "true"}}
    clinging = {"nodeSelector": {names.HOSTNAME_LABEL: "stuck"}, "tolerations": [{"operator": "Exists"}]}
    held = _removal("of-no-pool", OVER_LIMIT, nodeClaimName="by-hand")
    held["metadata"]["finalizers"] = ["example.com/held"]
    protected = {"annotations": {names.DO_NOT_DISRUPT_ANNOTATION: "true"}}
    return Scenario(
        hours=0.5,
        objects=(
            _servers(most={TWO: 12}, scaleDownAfter="60s"),
            claim("by-hand"),
            *(_request(name) for name in ("refused", "stuck", "spared", "busy", "loaded", "called", "unmarked")),
            cloud(),
        ),
        workloads=(
            Burst(name="own", pods=3, at="1m25s", lasts="8m", pod=PodShape(cpu="1200m", spec=own)),
            Burst(name="clinging", pods=1, at="2m40s", lasts="30s", pod=PodShape(cpu="100m", spec=clinging)),
        ),
        events=(
            at("1s", "patch", cloud(refuseDelete="refused", stuckDelete="stuck")),
            *(
                at("1m20s", "patch", the_node(each, metadata={"labels": {"example.com/own": "true"}}))
                for each in ("busy", "loaded", "called")
            ),
            at("1m20s", "patch", the_node("spared", metadata=protected)),
            at("1m50s", "create", _removal("unmarked", EMPTY, nodeClaimName="unmarked")),
            at("1m55s", "patch", the_node("unmarked", spec={"taints": None})),
            at("2m30s", "create", held),
            at("2m30s", "create", _removal("of-nothing", UNDERUTILIZED, nodeClaimName="nothing")),
            at("2m30s", "create", _removal("of-no-node", UNDERUTILIZED, nodeName="nothing")),
            at("2m40s", "create", _removal("busy", EMPTY, nodeClaimName="busy")),
            at("3m", "create", _removal("loaded", NOT_READY, nodeClaimName="loaded")),
            at("3m20s", "create", _removal("called", OVER_LIMIT, nodeName="called")),
            at("3m15s", "patch", the_node("stuck", spec={"taints": None})),
            at("4m", "delete", _the_removal("of-no-pool")),
            at("4m30s", "patch", _the_removal("of-no-pool", metadata={"finalizers": None})),
            at("5m", "patch", _the_servers(metadata=PAUSED)),
            at("5m10s", "create", _removal("spared", UNDERUTILIZED, nodeClaimName="spared")),
            at("6m", "patch", _the_servers(metadata=NOT_PAUSED)),
            at("6m30s", "create", _request("fresh")),
            at("6m35s", "create", _removal("fresh", EMPTY, nodeClaimName="fresh")),
            at("7m", "patch", node_class_says("False"), status=True),
            at("7m5s", "create", _request("classless")),
            at("7m15s", "create", _removal("classless", OVER_LIMIT, nodeClaimName="classless")),
            at("8m", "patch", node_class_says("True"), status=True),
            at("9m", "patch", cloud(refuseDelete=None, stuckDelete=None)),
            at("10m", "delete", _the_removal("refused")),
            at("11m", "delete", the_claim("stuck")),
        ),
        settings={"removalRetryAfter": "20s", "maxRemovalAttempts": 3},
    )


# -- pools ------------------------------------------------------------------------------------------------------------------


def _odd_servers() -> Scenario:
    """Pools of server types that cannot be served or only in part, and what they say of themselves."""
    missing = {**manifests.NODE_CLASS, "name": "missing"}
    theirs = {"group": names.GROWTH, "kind": "HetznerNodeClass", "name": "default"}
    second = named("karpenter.kwok.sh/v1alpha1", "KWOKNodeClass", "second", spec={"nodeRegistrationDelay": "10s"})
    agent = {"key": AGENT_TAINT, "effect": "NoSchedule"}
    kept = {"name": "CX23", "min": 2, "max": 6}
    return Scenario(
        hours=0.5,
        objects=(
            second,
            _servers("default", most={"cx33": 3}),
            _servers("mixed", most={"cax21": 2, "cx33": 2}),
            _servers("unsold", most={"none-such": 2, "cx22": 1}),
            _servers("half-sold", most={"cx32": 2, "cx23": 1}),
            _servers("a-pool-with-a-name-that-is-longer-than-any-label-of-a-node-could-be", most={"cx23": 2}),
            _servers("classless", most={"cx23": 2}, nodeClassRef=missing),
            _servers("theirs", most={"cx23": 2}, nodeClassRef=theirs),
            _servers("of-second", most={"cx23": 2}, nodeClassRef={**manifests.NODE_CLASS, "name": "second"}),
            _servers(
                most={},
                serverTypes=[kept, {"name": "cx33", "max": 2, "priority": 3}],
                template={"labels": {"team": "red"}, "startupTaints": [agent]},
                limits={"nodes": 7},
            ),
        ),
        workloads=(
            Burst(name="app", pods=7, at="1m", lasts="7m", pod=_shape("1500m")),
            Burst(name="anywhere", pods=3, at="1m", lasts="5m", pod=PodShape(cpu="1")),
            Burst(
                name="mixed",
                pods=3,
                at="1m",
                lasts="5m",
                pod=PodShape(cpu="2500m", spec={"nodeSelector": {names.POOL_LABEL: "mixed"}}),
            ),
            Burst(
                name="nowhere",
                pods=1,
                at="1m",
                lasts="9m",
                pod=PodShape(cpu="1", spec={"nodeSelector": {names.POOL_LABEL: "nowhere"}}),
            ),
            Burst(
                name="lost",
                pods=1,
                at="1m",
                lasts="9m",
                pod=PodShape(cpu="1", spec={"nodeSelector": {names.POOL_LABEL: "unsold"}}),
            ),
        ),
        events=(
            at("2m", "patch", node_class_says("False"), status=True),
            at("3m", "patch", node_class_says("True"), status=True),
            at("4m", "patch", _the_servers(spec={"limits": {"nodes": 4}})),
            at("4m30s", "patch", _the_servers(spec={"serverTypes": [{**kept, "max": 4}]})),
            at("5m", "delete", second),
            at("6m", "patch", _the_servers(metadata=PAUSED)),
            at("7m", "patch", _the_servers(spec={"limits": {"nodes": 3}})),
            at("9m", "patch", _the_servers(metadata=NOT_PAUSED)),
            at("10m", "patch", _the_servers(spec={"limits": {"nodes": 1}})),
            at("12m", "delete", _the_servers("of-second")),
            at("12m", "delete", _the_servers("mixed")),
        ),
        settings={"kwokCatalogue": "hetzner", "usePaidTime": True, "backOffCeiling": "20s"},
    )


def _moved_servers() -> Scenario:
    """Each pool has a server too large for the pod that is left on it; what is to replace it comes, or does not."""
    families = ("c", "m", "s")
    pools = tuple(
        _servers(
            f"of-{each}",
            most={f"{each}-8x-amd64-linux": 1, f"{each}-2x-amd64-linux": 2},
            optimise="Continuous",
        )
        for each in families
    )
    return Scenario(
        hours=0.75,
        objects=(*pools, _servers(most={TWO: 6, FOUR: 4}, optimise="Continuous", limits={"nodes": 5}), cloud()),
        workloads=(
            *(Burst(name=f"left-{each}", pods=1, at="10s", lasts="24m", pod=_firm(f"of-{each}")) for each in families),
            *(
                Burst(name=f"large-{each}", pods=1, at="10s", lasts="150s", pod=_firm(f"of-{each}", cpu="5"))
                for each in families
            ),
            Burst(name="base", pods=3, at="10s", lasts="22m", pod=_firm(SERVERS)),
            Waves(name="web", low=0, high=6, period="6m", steps=1, pod=_firm(SERVERS)),
        ),
        events=(
            at("2m", "patch", cloud(noCapacity="c-2x-*/*/*", neverReady="m-2x-*")),
            at("3m40s", "crash", {}),
            at("6m", "patch", _the_servers(spec={"limits": {"nodes": 2}})),
            at("10m", "patch", cloud(noCapacity=None)),
            at("12m", "patch", cloud(neverReady=None)),
        ),
        settings={"readinessWait": "2m", "unmetTTL": "1m", "evictionCost": "0"},
    )


def _drifting_servers() -> Scenario:
    """A pool of five with a minimum of two is made anew one by one, while its template changes once more, and beside it pools that
    lose a type, keep what they have, have no room for a replacement, and are empty.
    """
    one = {"budgets": [{"nodes": "1"}]}
    one_a_pod = {"app": "five"}
    apart = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": one_a_pod}, "topologyKey": names.HOSTNAME_LABEL}
            ]
        }
    }

    def relabelled(pool: str, to: str) -> Json:
        return _the_servers(pool, spec={"template": {"labels": {"team": to}}})

    return Scenario(
        hours=0.75,
        objects=(
            _servers(
                "five", most={}, serverTypes=[{"name": TWO, "min": 2, "max": 8}], disruption=one, scaleDownAfter="10m"
            ),
            _servers("listed", most={TWO: 4, FOUR: 4}, disruption={"budgets": [{"nodes": "50%"}]}),
            _servers("kept", most={TWO: 3}, disruption={"budgets": [{"nodes": "0", "reasons": ["Drifted"]}]}),
            _servers("full", most={TWO: 2}, disruption=one),
            _servers("warm", most={}, serverTypes=[{"name": TWO, "min": 2, "max": 3}], disruption=one),
            cloud(),
        ),
        workloads=(
            Burst(
                name="five",
                pods=5,
                at="10s",
                lasts="44m",
                pod=PodShape(cpu="900m", memory="256Mi", labels=one_a_pod, spec={**_on("five"), "affinity": apart}),
            ),
            *(
                Burst(name=each, pods=2, at="10s", lasts="22m", pod=PodShape(cpu="1", memory="256Mi", spec=_on(each)))
                for each in ("listed", "kept", "full")
            ),
        ),
        events=(
            *(at("4m", "patch", relabelled(each, "b")) for each in ("five", "kept", "full", "warm")),
            at("5m", "patch", _the_servers("listed", spec={"serverTypes": [{"name": FOUR, "max": 4}]})),
            at("6m", "crash", {}),
            at("10m", "patch", relabelled("five", "c")),
            at("12m", "patch", _the_servers("full", spec={"serverTypes": [{"name": TWO, "max": 3}]})),
        ),
        settings={"unmetTTL": "1m"},
    )


def _on(pool: str) -> Json:
    return {"nodeSelector": {names.POOL_LABEL: pool}}


def _firm(pool: str, *, cpu: str = "900m") -> PodShape:
    """On machines that nobody takes back: spot machines are not replaced by spot machines."""
    selector = {names.POOL_LABEL: pool, names.CAPACITY_TYPE_LABEL: "on-demand"}
    return PodShape(cpu=cpu, memory="256Mi", spec={"nodeSelector": selector})


OF_SERVERS: Final[Mapping[str, Scenario]] = {
    "short of servers": _short_of_servers(),
    "late servers": _late_servers(),
    "stubborn servers": _stubborn_servers(),
    "odd servers": _odd_servers(),
    "moved servers": _moved_servers(),
    "drifting servers": _drifting_servers(),
}
