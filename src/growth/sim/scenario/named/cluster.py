"""Named worlds of what every cluster has: pools, buffers, claims made by hand, a bad cloud, leaks, drains, caps."""

from collections.abc import Mapping
from typing import Final

from growth.api import names
from growth.api.kinds import Json
from growth.sim.scenario import manifests, oddities
from growth.sim.scenario.manifests import asks, cores
from growth.sim.scenario.model import Batch, Burst, Event, PodShape, Rollout, Scenario, Waves
from growth.sim.scenario.named.words import at, claim_for_pods, cloud, named, of, only_on, the_claim, the_node, the_pool
from growth.sim.scenario.oddities import NOBODY, buffer, claim
from growth.sim.world.nodes import AGENT_TAINT

FOUR: Final = cores("4")
PROTECTED: Final[dict[str, str]] = {names.DO_NOT_DISRUPT_ANNOTATION: "true"}


# -- kept room --------------------------------------------------------------------------------------------------------------


def _buffers() -> Scenario:
    """Every way to ask for room, right and wrong."""
    wrong_kind = {"apiGroup": "apps", "kind": "DaemonSet", "name": "agent"}
    return Scenario(
        hours=0.5,
        objects=(
            manifests.node_pool("default", requirements=(FOUR,), consolidate_after="30s"),
            oddities.pod_template("small", cpu="500m"),
            oddities.pod_template("huge", cpu="5000"),
            buffer("some", podTemplateRef={"name": "small"}, replicas=3),
            buffer("none", podTemplateRef={"name": "small"}, replicas=0),
            buffer("missing", podTemplateRef={"name": "nothing"}, replicas=2),
            buffer("impossible", podTemplateRef={"name": "huge"}, replicas=1),
            buffer("endless", podTemplateRef={"name": "small"}, replicas=20_000),
            buffer("share", scalableRef=oddities.WEB, percentage=20),
            buffer("allowed", scalableRef=oddities.WEB, limits={"cpu": "2"}),
            buffer("of-nothing", scalableRef={**oddities.WEB, "name": "nothing"}, replicas=1),
            buffer("of-daemons", scalableRef=wrong_kind, replicas=1),
            buffer("others", scalableRef=oddities.WEB, replicas=2, provisioningStrategy="example.com/another"),
        ),
        workloads=(Waves(name="web", low=2, high=12, period="8m", steps=2),),
        events=(
            at("4m", "delete", buffer("share")),
            at("6m", "patch", buffer("some", replicas=1)),
            at("8m", "patch", buffer("allowed", limits={"cpu": "1"})),
        ),
    )


# -- pools ------------------------------------------------------------------------------------------------------------------


def _odd_pools() -> Scenario:
    """Pools that cannot be served beside one that can, and what people do to them."""
    say = oddities.node_class_says
    family = {**asks(names.KWOK_INSTANCE_FAMILY_LABEL, "Exists"), "minValues": 2}
    types = {**asks(names.INSTANCE_TYPE_LABEL, "Exists"), "minValues": 4}
    second = named("karpenter.kwok.sh/v1alpha1", "KWOKNodeClass", "second", spec={"nodeRegistrationDelay": "10s"})
    of_second = manifests.node_pool("of-second", taints=(NOBODY,))
    of_second["spec"]["template"]["spec"]["nodeClassRef"] = {**manifests.NODE_CLASS, "name": "second"}
    own_label = asks("example.com/team", "In", "red", "blue")
    return Scenario(
        hours=0.5,
        objects=(
            *oddities.bad_pools(),
            second,
            of_second,
            manifests.node_pool(
                "default",
                requirements=(
                    asks(names.KWOK_INSTANCE_CPU_LABEL, "Gt", "1"),
                    asks(names.KWOK_INSTANCE_CPU_LABEL, "Lt", "9"),
                    asks(names.ARCH_LABEL, "NotIn", "arm64"),
                    asks("example.com/gpu", "DoesNotExist"),
                    asks(names.ZONE_LABEL, "Exists"),
                    own_label,
                    family,
                    types,
                ),
                labels={"edition": "1"},
                limits={"cpu": "60"},
                consolidate_after="30s",
            ),
        ),
        workloads=(
            Waves(
                name="web",
                low=2,
                high=24,
                period="8m",
                steps=2,
                pod=PodShape(spec={"nodeSelector": {"example.com/team": "red"}}),
            ),
            Burst(name="app", pods=8, at="1m", lasts="6m"),
        ),
        events=(
            at("2m", "patch", say("False"), status=True),
            at("3m", "patch", say("Unknown"), status=True),
            at("4m", "patch", say("True"), status=True),
            at("4m", "delete", second),
            at("5m", "patch", the_pool("default", metadata={"annotations": {names.PAUSED_ANNOTATION: "true"}})),
            at("7m", "patch", the_pool("default", metadata={"annotations": {names.PAUSED_ANNOTATION: None}})),
            at(
                "8m",
                "patch",
                the_pool("default", metadata={"annotations": {names.NODE_LIMIT_MODE_ANNOTATION: "Elastic"}}),
            ),
            at("9m", "patch", the_pool("default", metadata={"annotations": {names.NODE_LIMIT_MODE_ANNOTATION: None}})),
            at("10m", "delete", the_pool("bad-sizes")),
            at("11m", "delete", the_pool("bad-types")),
        ),
    )


def _best_effort() -> Scenario:
    """More kinds of machines are asked for than there are for such pods, and fewer will do."""
    families = {**asks(names.KWOK_INSTANCE_FAMILY_LABEL, "Exists"), "minValues": 3}
    types = {**asks(names.INSTANCE_TYPE_LABEL, "Exists"), "minValues": 30}
    zones = {**asks(names.ZONE_LABEL, "Exists"), "minValues": 2}
    lean = PodShape(cpu="2500m", memory="100Mi", spec={"nodeSelector": {names.ZONE_LABEL: "test-zone-a"}})
    return Scenario(
        hours=0.5,
        objects=(manifests.node_pool("default", requirements=(FOUR, families, types, zones), consolidate_after="20s"),),
        workloads=(Burst(name="app", pods=4, at="30s", lasts="5m", pod=lean),),
        settings={"minValuesPolicy": "BestEffort"},
    )


def _strangers() -> Scenario:
    """What is there and not ours, and pools of another kind."""
    theirs = oddities.other_providers_pool()
    their_claim = claim("theirs", nodeClassRef={"group": names.GROWTH, "kind": "HetznerNodeClass", "name": "default"})
    mine = claim_for_pods("of-plain")
    mine["metadata"]["labels"][names.POOL_LABEL] = "plain"
    first, second = (
        named(
            "growth.dev/v1alpha1",
            "NodeRequest",
            name,
            spec={"pool": "plain", "targetOffering": "kwok-c-4x-amd64-linux"},
        )
        for name in ("first", "second")
    )
    unmet = {"phase": "Unmet", "unmetUntil": "2030-01-01T00:00:00Z"}
    return Scenario(
        hours=0.5,
        objects=(
            manifests.node_pool("default", requirements=(FOUR,), consolidate_after="20s"),
            oddities.growth_pool(),
            theirs,
            their_claim,
            mine,
            first,
            second,
        ),
        workloads=(Burst(name="app", pods=6, at="30s", lasts="4m", pod=PodShape(cpu="1")),),
        events=(
            at("2m", "patch", {**second, "status": unmet}, status=True),
            at("3m", "create", oddities.growth_pool("second")),
            at("5m", "delete", first),
            at("5m", "delete", second),
            at("4m", "patch", named("growth.dev/v1alpha1", "NodePool", "plain", spec={"scaleDownAfter": "5m"})),
            at("6m", "delete", named("growth.dev/v1alpha1", "NodePool", "second")),
            at("8m", "delete", the_claim("of-plain")),
            at("9m", "delete", the_claim("theirs")),
            at("9m", "delete", theirs),
        ),
    )


# -- claims and machines ----------------------------------------------------------------------------------------------------


def _by_hand() -> Scenario:
    """Claims that people make, and what they do to claims and Nodes."""
    many = cores("2")
    nothing = cores("3")
    agent = {"key": AGENT_TAINT, "effect": "NoSchedule"}
    gpu = {"requests": {"example.com/gpu": "1"}}
    orphan = claim("orphan")
    orphan["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "name": "gone",
            "uid": "0b7e4d57-0000-4000-8000-000000000000",
        }
    ]
    return Scenario(
        hours=0.75,
        objects=(
            manifests.node_pool("default", requirements=(FOUR,), consolidate_after="20s"),
            claim("plain"),
            claim("started", startupTaints=[agent]),
            claim("with-gpu", resources=gpu),
            claim("nothing-sold", requirements=[nothing]),
            claim("no-class", nodeClassRef={**manifests.NODE_CLASS, "name": "missing"}),
            claim("twice", requirements=[many]),
            claim("slowly"),
            claim("taken"),
            claim("elsewhere"),
            named("v1", "ConfigMap", "kwok-taken", namespace="growth", data={"of": "somebody"}),
            cloud(),
            claim("paused"),
            claim("renamed"),
            claim("nodeless"),
            orphan,
        ),
        workloads=(Burst(name="app", pods=6, at="30s", lasts="4m", pod=PodShape(cpu="1")),),
        events=(
            at("1s", "patch", cloud(stuckDelete="slowly")),
            at("2m", "patch", the_node("paused", metadata={"annotations": {names.PAUSED_ANNOTATION: "true"}})),
            at("2m", "patch", the_node("plain", spec={"unschedulable": True})),
            at("2m", "delete", the_claim("slowly")),
            at("2m20s", "patch", the_claim("slowly", metadata={"finalizers": None})),
            at("2m20s", "create", claim("slowly")),
            at("4m", "patch", cloud(stuckDelete=None)),
            at("3m", "patch", {**the_claim("elsewhere"), "status": {"providerID": "kwok://plain"}}, status=True),
            at("3m20s", "delete", the_claim("elsewhere")),
            at("3m40s", "patch", {**the_claim("elsewhere"), "status": {"providerID": "kwok://elsewhere"}}, status=True),
            at("3m", "delete", the_claim("taken")),
            at("5m", "delete", named("v1", "ConfigMap", "kwok-taken", namespace="growth")),
            at("4m", "patch", the_node("nodeless", metadata={"finalizers": None})),
            at("4m5s", "delete", the_node("nodeless")),
            at("5m", "patch", the_claim("twice", metadata={"finalizers": None})),
            at("5m", "delete", the_claim("twice")),
            at("5m", "create", claim("twice")),
            at("7m", "patch", the_node("paused", metadata={"annotations": {names.PAUSED_ANNOTATION: None}})),
            at("8m", "delete", the_node("plain")),
            at("9m", "delete", the_claim("orphan")),
            at("10m", "delete", the_claim("with-gpu")),
            at("10m", "delete", the_claim("no-class")),
            at("10m", "delete", the_claim("nothing-sold")),
        ),
        settings={"registrationTTL": "5m", "decisionsKept": 3},
    )


def _bad_cloud() -> Scenario:
    """A cloud that refuses, forgets and loses, as its ConfigMap of faults says."""
    passing = "# none of these\n*/test-zone-a/* until 2030-01-07T08:01:30Z\nbad line\n"
    return Scenario(
        hours=0.75,
        objects=(
            manifests.node_pool("default", requirements=(FOUR,), consolidate_after="20s"),
            cloud(),
        ),
        workloads=(
            Waves(name="web", low=0, high=16, period="3m", steps=1, pod=PodShape(cpu="1")),
            Burst(name="first", pods=8, at="10s", lasts="5m", pod=PodShape(cpu="1")),
        ),
        events=(
            at("1s", "patch", cloud(noCapacity=passing, slowAnswers="1s")),
            at("2m", "patch", cloud(noCapacity="*/*/*", slowAnswers="-3s")),
            at("5m", "patch", cloud(noCapacity=None, slowAnswers=None, lostAnswers="0.5")),
            at("8m", "patch", cloud(lostAnswers="2", unavailable="true")),
            at("10m", "patch", cloud(lostAnswers=None, unavailable="perhaps", neverReady="*")),
            at("13m", "patch", cloud(unavailable="false", neverReady=None, vanish="* after 4m\nx after never")),
            at("18m", "patch", cloud(vanish="*")),
            at("18m20s", "patch", cloud(vanish=None, other="1")),
        ),
        settings={"initializationTTL": "5m", "registrationTTL": "5m"},
    )


def _many_leaks() -> Scenario:
    """So many machines lose their claims, or claims their machines, that people are asked first."""
    claims = tuple(f"lost-{each}" for each in range(8))
    events: list[Event] = []
    for name in claims:
        events.append(at("4m", "patch", the_claim(name, metadata={"finalizers": None})))
        events.append(at("4m", "delete", the_claim(name)))
    return Scenario(
        hours=1.0,
        objects=(
            manifests.node_pool("default", requirements=(FOUR,), consolidate_after="20s"),
            *(claim(name) for name in claims),
        ),
        workloads=(Burst(name="app", pods=6, at="30s", lasts="20m", pod=PodShape(cpu="1")),),
        events=(*events, at("25m", "patch", _cloud_or_new())),
    )


def _cloud_or_new() -> Json:
    """The list that is held back gets a confirmation of another list."""
    marked = {"annotations": {names.CONFIRM_COLLECTION_ANNOTATION: "of another list"}}
    return named("v1", "ConfigMap", names.COLLECTION_CONFIG_MAP, namespace="growth", metadata=marked)


# -- drains -----------------------------------------------------------------------------------------------------------------


_VOLUME: Final = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def _default_class() -> Json:
    """For claims of volumes that name none."""
    made = manifests.storage_class()
    made["metadata"]["annotations"] = {names.DEFAULT_STORAGE_CLASS_ANNOTATION: "true"}
    return made


def _hard_drains() -> Scenario:
    """Pods that may not leave, leave late or never, and a time after which they must."""
    budget = {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "kept"}}}
    own = tuple(
        manifests.deployment(app, 1, PodShape(cpu="100m", spec=only_on(on), annotations=marks))
        for app, on, marks in (
            ("guarded", "timed", PROTECTED),
            ("kept", "timed", {}),
            ("for-a-while", "patient", {names.DO_NOT_DISRUPT_ANNOTATION: "6m"}),
            ("misspelt", "patient", {names.DO_NOT_DISRUPT_ANNOTATION: "for ever"}),
            ("twice-kept", "two-budgets", {}),
        )
    )
    stateful = PodShape(cpu="100m", volume="1Gi", spec=only_on("patient"))
    to_the_end = [{"key": names.DISRUPTED_TAINT, "operator": "Exists"}, *only_on("timed")["tolerations"]]
    shared = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "shared"}}]}
    staying = PodShape(cpu="100m", spec={**only_on("timed"), **shared, "tolerations": to_the_end})
    return Scenario(
        hours=0.75,
        objects=(
            _default_class(),
            named("v1", "PersistentVolumeClaim", "shared", namespace="default", spec=_VOLUME),
            manifests.deployment("staying", 1, staying),
            manifests.node_pool("default", requirements=(FOUR,), consolidate_after="20s"),
            claim_for_pods("timed", terminationGracePeriod="3m"),
            claim_for_pods("patient"),
            claim_for_pods("two-budgets", terminationGracePeriod="4m"),
            *own,
            manifests.deployment("store", 2, stateful),
            named("policy/v1", "PodDisruptionBudget", "kept", namespace="default", spec=budget),
            *(
                named(
                    *("policy/v1", "PodDisruptionBudget", f"two-{each}"),
                    namespace="default",
                    spec={"maxUnavailable": 1, "selector": {"matchLabels": {"app": "twice-kept"}}},
                )
                for each in (1, 2)
            ),
        ),
        workloads=(Rollout(name="api", replicas=6, every="5m"),),
        events=(
            at("3m", "delete", the_claim("timed")),
            at("3m", "delete", the_claim("patient")),
            at("4m", "delete", the_node("two-budgets")),
            *(
                at("10m", "delete", named("apps/v1", "Deployment", each, namespace="default"))
                for each in ("guarded", "kept", "for-a-while", "misspelt", "twice-kept", "store", "staying")
            ),
        ),
    )


# -- the whole cluster ------------------------------------------------------------------------------------------------------


def _caps() -> Scenario:
    """Fewer machines and less money than are asked for, until less is asked for."""
    return Scenario(
        hours=0.5,
        objects=(
            manifests.node_pool("default", requirements=(FOUR,), limits={"nodes": "12"}, consolidate_after="20s"),
        ),
        workloads=(
            Burst(name="app", pods=40, at="30s", lasts="8m", pod=PodShape(cpu="1")),
            Batch(name="train", pods=12, at="2m", runs="2m", pod=PodShape(cpu="1")),
        ),
        settings={"maxNodes": 8, "maxHourly": "0.9", "packer": "first-fit"},
    )


def _protected_empties() -> Scenario:
    """Empty machines that stay: budgets that allow nothing, or only at night, and annotations."""
    closed = ({"nodes": "0"},)
    at_night = ({"nodes": "0", "schedule": "0 0 1 1 *", "duration": "10m"}, {"nodes": "1", "reasons": ["Empty"]})
    broken = ({"nodes": "1", "schedule": "0 0 31 2 *", "duration": "10m"},)
    return Scenario(
        hours=0.75,
        objects=tuple(
            manifests.node_pool(name, requirements=(FOUR, of(name)), budgets=budgets, consolidate_after="20s")
            for name, budgets in (("closed", closed), ("night", at_night), ("broken", broken))
        ),
        workloads=tuple(
            Burst(
                name=name,
                pods=5,
                at="30s",
                lasts="4m",
                pod=PodShape(cpu="2", spec={"nodeSelector": {"example.com/of": name}}),
            )
            for name in ("closed", "night", "broken")
        ),
        events=(
            at("12m", "patch", the_pool("closed", spec={"disruption": {"budgets": [{"nodes": "50%"}]}})),
            at("14m", "delete", the_pool("night")),
            at("20m", "crash", {}),
        ),
    )


CLUSTER: Final[Mapping[str, Scenario]] = {
    "buffers": _buffers(),
    "odd pools": _odd_pools(),
    "best effort": _best_effort(),
    "strangers": _strangers(),
    "by hand": _by_hand(),
    "bad cloud": _bad_cloud(),
    "many leaks": _many_leaks(),
    "hard drains": _hard_drains(),
    "caps": _caps(),
    "kept empty": _protected_empties(),
}
