"""Volumes tie pods to places, and nodes attach only so many."""

import datetime as dt

import msgspec

from growth.api.meta import ObjectMeta
from growth.api.placement import NodeSelector, NodeSelectorTerm
from growth.api.pods import EphemeralVolumeSource, PersistentVolumeClaimTemplate, Volume
from growth.api.volumes import (
    PersistentVolume,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    VolumeNodeAffinity,
)
from growth.planning.plan import Filter
from tests.unit.planning.builders import (
    MEDIUM,
    ZONE,
    claim,
    csi_node,
    expression,
    kind,
    need,
    node,
    offering,
    plan,
    pod,
    pods,
    pool,
    spread,
    storage,
    storage_class,
    volume,
)

TEAM = "example.com/team"


def own(name: str = "scratch", storage_name: str = "fast") -> Volume:
    """A generic ephemeral volume."""
    spec = PersistentVolumeClaimSpec(storage_class_name=storage_name)
    return Volume(
        name=name, ephemeral=EphemeralVolumeSource(volume_claim_template=PersistentVolumeClaimTemplate(spec=spec))
    )


def test_a_bound_volume_draws_the_machine_to_its_zone() -> None:
    """A machine is bought where the pod's volume can be reached."""
    made = plan(pool(), pod(claims=["data"]), storage(claim("data", volume="v"), volume("v", "b")))
    assert made.claim.zone == "b"


def test_a_volume_of_two_zones_takes_the_cheaper() -> None:
    """Of a volume's alternatives any will do, the cheapest first."""
    dear = kind("only", offerings=[offering("a", 0.1), offering("b", 0.3), offering("c", 0.2)])
    made = plan(pool("default", dear), pod(claims=["data"]), storage(claim("data", volume="v"), volume("v", "b", "c")))
    assert made.claim.zone == "c"


def test_a_volume_of_two_zones_leaves_both_open() -> None:
    """Zones that are alternatives of a volume count as so many for `minValues`, and the claim allows each of them."""
    view = storage(claim("data", volume="v"), volume("v", "b", "c"))
    made = plan(pool(needs=[need(ZONE, "Exists", least=2)]), pod(claims=["data"]), view)
    assert made.claim.requirements[ZONE].values == {"b", "c"}
    too_many = plan(pool(needs=[need(ZONE, "Exists", least=3)]), pod(claims=["data"]), view)
    assert too_many.reason().filter is Filter.MIN_VALUES


def test_alternatives_that_differ_in_two_labels_stay_apart() -> None:
    """«Zone b of team red, or zone c of team blue» does not make zone b of team blue a place."""
    terms = tuple(
        NodeSelectorTerm(match_expressions=(expression(ZONE, "In", zone), expression(TEAM, "In", team)))
        for zone, team in (("b", "red"), ("c", "blue"))
    )
    affinity = VolumeNodeAffinity(required=NodeSelector(node_selector_terms=terms))
    bound = PersistentVolume(metadata=ObjectMeta(name="v"), spec=PersistentVolumeSpec(node_affinity=affinity))
    view = storage(claim("data", volume="v"), bound)
    made = plan(pool(labels={TEAM: "blue"}), pod(claims=["data"]), view)
    assert made.claim.zone == "c"


def test_two_volumes_in_different_zones_fit_nowhere() -> None:
    """All volumes of a pod must be reachable from its node at once."""
    view = storage(claim("x", volume="vx"), volume("vx", "a"), claim("y", volume="vy"), volume("vy", "b"))
    made = plan(pool(), pod(claims=["x", "y"]), view)
    assert made.reason().filter is Filter.VOLUMES


def test_alternatives_of_two_volumes_are_combined() -> None:
    """Two volumes of several zones meet in the zone that both have."""
    view = storage(claim("x", volume="vx"), volume("vx", "a", "b"), claim("y", volume="vy"), volume("vy", "b", "c"))
    assert plan(pool(), pod(claims=["x", "y"]), view).claim.zone == "b"


def test_zone_labels_of_a_volume_bind_like_its_affinity() -> None:
    """A volume labelled with a zone is reached from there only, whether or not it says so in its affinity."""
    view = storage(claim("data", volume="v"), volume("v", labels={ZONE: "c"}))
    assert plan(pool(), pod(claims=["data"]), view).claim.zone == "c"


def test_a_volume_label_may_list_several_zones() -> None:
    """Values of a volume's zone label are joined by two underscores."""
    view = storage(claim("data", volume="v"), volume("v", labels={ZONE: "b__c"}))
    assert plan(pool(needs=[need(ZONE, "NotIn", "b")]), pod(claims=["data"]), view).claim.zone == "c"


def test_a_pool_without_the_volumes_zone_says_so() -> None:
    """A volume in a zone that the pool excludes is a reason of volumes."""
    view = storage(claim("data", volume="v"), volume("v", "b"))
    made = plan(pool(needs=[need(ZONE, "In", "a")]), pod(claims=["data"]), view)
    assert made.reason().filter is Filter.VOLUMES


def test_a_claim_that_waits_for_its_pod_goes_where_its_class_makes_volumes() -> None:
    """Allowed topologies of the class hold for claims that are not bound yet."""
    view = storage(claim("data", storage="zonal"), storage_class("zonal", "c"))
    assert plan(pool(), pod(claims=["data"]), view).claim.zone == "c"


def test_a_claim_without_a_class_uses_the_default_class() -> None:
    """No class named means the cluster's default."""
    view = storage(claim("data"), storage_class("zonal", "b", default=True))
    assert plan(pool(), pod(claims=["data"]), view).claim.zone == "b"


def test_a_claim_with_no_class_at_all_waits() -> None:
    """An unbound claim without any class can be bound by nobody."""
    assert plan(pool(), pod(claims=["data"]), storage(claim("data"))).reason().filter is Filter.VOLUMES


def test_an_unbound_claim_of_an_immediate_class_waits() -> None:
    """A class that binds at once decides first; no machine is bought for a guess."""
    view = storage(claim("data", storage="eager"), storage_class("eager", waits=False))
    assert plan(pool(), pod(claims=["data"]), view).reason().filter is Filter.VOLUMES


def test_a_class_without_provisioner_makes_no_volume() -> None:
    """A claim that waits for a volume made by hand is not helped by a machine."""
    view = storage(claim("data", storage="hand"), storage_class("hand", provisioner="kubernetes.io/no-provisioner"))
    assert plan(pool(), pod(claims=["data"]), view).reason().filter is Filter.VOLUMES


def test_a_missing_claim_is_named() -> None:
    """A pod whose claim does not exist is told which."""
    made = plan(pool(), pod(claims=["data"]))
    assert made.reason().filter is Filter.VOLUMES
    assert "default/data" in made.reason().message


def test_a_lost_claim_is_no_claim() -> None:
    """A claim that lost its volume starts no pod."""
    view = storage(claim("data", volume="v", phase="Lost"), volume("v"))
    assert plan(pool(), pod(claims=["data"]), view).reason().filter is Filter.VOLUMES


def test_a_missing_class_is_named() -> None:
    """A claim of a class that does not exist cannot be bound."""
    made = plan(pool(), pod(claims=["data"]), storage(claim("data", storage="nowhere")))
    assert "nowhere" in made.reason().message


def test_a_bound_claim_whose_volume_is_gone_fits_nowhere() -> None:
    """A claim may name a volume that no longer exists."""
    assert plan(pool(), pod(claims=["data"]), storage(claim("data", volume="v"))).reason().filter is Filter.VOLUMES


def test_claims_are_looked_up_in_the_pods_namespace() -> None:
    """A claim of the same name elsewhere is another claim."""
    view = storage(claim("data", volume="v", namespace="other"), volume("v"))
    assert plan(pool(), pod(claims=["data"]), view).unplaced == ["pod"]


def test_an_existing_node_in_the_volumes_zone_is_used_first() -> None:
    """Volumes choose among nodes as they choose among machines."""
    view = storage(claim("data", volume="v"), volume("v", "b"))
    made = plan(node("one", zone="a"), node("two", zone="b"), pool(), pod(claims=["data"]), view)
    assert made.where() == "two"


def test_a_node_attaches_no_more_than_its_driver_allows() -> None:
    """The limit that a node's driver tells holds for new pods."""
    view = storage(claim("data", volume="v"), volume("v"), csi_node("one", 1))
    made = plan(node("one", attached=["other"]), pool(), pod(claims=["data"]), view)
    assert made.on("one") == []


def test_a_volume_that_is_attached_already_costs_nothing() -> None:
    """Volumes are counted once a node, however many pods use them."""
    view = storage(claim("data", volume="v"), volume("v", handle="h"), csi_node("one", 1))
    assert plan(node("one", attached=["h"]), pool(), pod(claims=["data"]), view).on("one") == ["pod"]


def test_new_machines_keep_the_volume_limits_of_their_type() -> None:
    """A planned machine takes no more volumes than its type attaches."""
    limited = kind("limited", 16, volume_limits={"csi.example.com": 2})
    names = [f"data-{at}" for at in range(4)]
    view = storage(*(claim(name, storage="fast") for name in names), storage_class("fast"))
    made = plan(pool("default", limited), [pod(name, claims=[name], cpu="100m") for name in names], view)
    assert made.sizes == [2, 2]


def test_a_type_without_a_limit_takes_any_number() -> None:
    """No limit is not a limit of zero."""
    names = [f"data-{at}" for at in range(8)]
    view = storage(*(claim(name, storage="fast") for name in names), storage_class("fast"))
    made = plan(pool("default", MEDIUM), [pod(name, claims=[name], cpu="100m") for name in names], view)
    assert made.sizes == [8]


def test_pods_that_share_a_volume_share_a_machine() -> None:
    """A volume used by many pods is attached once, so they all fit together."""
    view = storage(claim("data", storage="fast"), storage_class("fast"))
    limited = kind("limited", 4, volume_limits={"csi.example.com": 1})
    assert plan(pool("default", limited), pods(3, claims=["data"]), view).sizes == [3]


def test_pods_that_share_a_volume_fill_an_existing_node() -> None:
    """The first pod of many that share a volume does not close the node to the others."""
    view = storage(claim("data", volume="v"), volume("v"), csi_node("one", 1))
    assert plan(node("one"), pool(), pods(3, claims=["data"]), view).on("one") == ["pod-00", "pod-01", "pod-02"]


def test_ephemeral_volumes_are_each_pods_own() -> None:
    """Every pod with a generic ephemeral volume brings another one to attach."""
    limited = kind("limited", 16, volume_limits={"csi.example.com": 2})
    made = plan(pool("default", limited), pods(4, volumes=[own()], cpu="100m"), storage(storage_class("fast")))
    assert made.sizes == [2, 2]


def test_ephemeral_volumes_go_where_their_class_makes_them() -> None:
    """Allowed topologies hold for claims that the pod brings with it."""
    view = storage(storage_class("zonal", "b"))
    assert plan(pool(), pod(volumes=[own(storage_name="zonal")]), view).claim.zone == "b"


def test_a_claim_for_one_pod_is_used_by_one() -> None:
    """ReadWriteOncePod: the second pod waits until the first is gone."""
    view = storage(claim("data", storage="fast", modes=["ReadWriteOncePod"]), storage_class("fast"))
    made = plan(pool(), pods(2, claims=["data"]), view)
    assert len(made.unplaced) == 1
    assert made.reasons(made.unplaced[0])[0].filter is Filter.VOLUMES


def test_a_claim_for_one_pod_that_is_in_use_admits_nobody() -> None:
    """ReadWriteOncePod: a bound pod holds the claim, wherever it runs."""
    view = storage(claim("data", volume="v", modes=["ReadWriteOncePod"]), volume("v"))
    made = plan(node("one", pod("holder", claims=["data"])), pool(), pod(claims=["data"]), view)
    assert made.reason().filter is Filter.VOLUMES


def test_a_claim_that_is_being_deleted_starts_no_pod() -> None:
    """A claim on its way out is not used by new pods."""
    going = msgspec.structs.replace(
        claim("data", volume="v"),
        metadata=ObjectMeta(
            name="data", namespace="default", deletion_timestamp=dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
        ),
    )
    assert plan(pool(), pod(claims=["data"]), storage(going, volume("v"))).reason().filter is Filter.VOLUMES


def test_volumes_without_a_driver_count_against_no_limit() -> None:
    """Only CSI volumes are counted."""
    bare = msgspec.structs.replace(volume("v"), spec=msgspec.structs.replace(volume("v").spec, csi=None))
    view = storage(claim("data", volume="v"), bare, csi_node("one", 0))
    assert plan(node("one"), pool(), pod(claims=["data"]), view).on("one") == ["pod"]


def test_a_volumes_zone_does_not_narrow_spread() -> None:
    """Pods of a spread are counted by their rule alone; volumes only choose the machine."""
    view = storage(claim("data", volume="v"), volume("v", "b"))
    made = plan(
        pool(),
        [pod("x", labels={"app": "w"}, spread=[spread(app="w")], claims=["data"])],
        pods(2, labels={"app": "w"}, spread=[spread(app="w")], cpu="500m"),
        view,
    )
    assert made.zones == ["a", "b", "c"]


def test_a_node_beyond_its_limit_takes_pods_that_attach_nothing_new() -> None:
    """A limit is about what is attached, and a pod whose volumes are there attaches nothing."""
    view = storage(claim("data", volume="v"), volume("v", handle="h"), csi_node("one", 1))
    assert plan(node("one", attached=["h", "other"]), pool(), pod(claims=["data"]), view).on("one") == ["pod"]
