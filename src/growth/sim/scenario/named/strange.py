"""Named worlds of things that do not belong together: records, claims, Nodes, pools and volumes that others have touched."""

import copy
from collections.abc import Mapping
from typing import Any, Final

from growth.api import names
from growth.api.crds import all_crds
from growth.api.kinds import Json
from growth.sim.scenario import manifests
from growth.sim.scenario.manifests import cores
from growth.sim.scenario.model import Burst, PodShape, Scenario
from growth.sim.scenario.named.words import at, claim_for_pods, named, only_on, the_claim, the_node, the_pool
from growth.sim.scenario.oddities import NOBODY, claim, spec_of

FOUR: Final = cores("4")


# -- claims, Nodes and records ----------------------------------------------------------------------------------------------


def _strange_records() -> Scenario:
    """Claims whose machine, Node or node class others have taken away, renamed or held back."""
    leaving = named(
        "karpenter.kwok.sh/v1alpha1",
        "KWOKNodeClass",
        "leaving",
        metadata={"finalizers": ["example.com/held"]},
        spec={"nodeRegistrationDelay": "10s"},
    )
    of_leaving = {**manifests.NODE_CLASS, "name": "leaving"}
    pool_of_leaving = manifests.node_pool("of-leaving", taints=(NOBODY,))
    pool_of_leaving["spec"]["template"]["spec"]["nodeClassRef"] = of_leaving
    return Scenario(
        hours=0.75,
        objects=(
            leaving,
            pool_of_leaving,
            manifests.node_pool("default", requirements=(FOUR,), consolidate_after="20s"),
            claim("alien"),
            claim("held"),
            claim("unreadable"),
            claim("early"),
            the_node("early", metadata={"labels": {"example.com/of": "somebody"}}),
        ),
        workloads=(Burst(name="app", pods=6, at="30s", lasts="4m", pod=PodShape(cpu="1")),),
        events=(
            at("1m", "delete", leaving),
            at("1m10s", "create", claim("classless", nodeClassRef=of_leaving)),
            at("5m", "patch", {**leaving, "metadata": {"name": "leaving", "finalizers": None}}),
            at("2m", "patch", {**the_claim("alien"), "status": {"providerID": "others://alien"}}, status=True),
            at("7m", "patch", {**the_claim("alien"), "status": {"providerID": "kwok://alien"}}, status=True),
            at("2m", "patch", the_node("held", metadata={"finalizers": ["example.com/held"]})),
            at("2m1s", "delete", the_node("held")),
            at("5m", "patch", the_node("held", metadata={"finalizers": None})),
            at("3m", "delete", the_node("early")),
            at("6m", "patch", _record("unreadable", data={"registersAt": "soon"})),
            at("10m", "delete", the_claim("unreadable")),
            at("14m", "delete", _record("unreadable")),
            at("12m", "delete", the_claim("classless")),
            at("12m", "delete", the_pool("of-leaving")),
        ),
        settings={"registrationTTL": "10m"},
    )


def _record(name: str, **change: Any) -> Json:
    """What the simulated cloud has written down of the claim's machine."""
    return named("v1", "ConfigMap", f"{names.KWOK_MACHINE_PREFIX}{name}", namespace="growth", **change)


# -- pools of another definition --------------------------------------------------------------------------------------------


def _lax_definition() -> Json:
    """NodePools as somebody else defines them: everything goes."""
    found = next(each for each in all_crds() if each["metadata"]["name"] == "nodepools.karpenter.sh")
    lax: Json = copy.deepcopy(found)
    for version in lax["spec"]["versions"]:
        version["schema"] = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return lax


def _unchecked_pools() -> Scenario:
    """Pools that were stored when nobody checked them: each says what is wrong with it, and nothing is bought there."""
    wrong: dict[str, Json] = {
        "labels": {
            "template": {
                "metadata": {
                    "labels": {"no label": "1", "karpenter.sh/own": "1", "team": "a/b", names.HOSTNAME_LABEL: "x"}
                }
            }
        },
        "needs": {
            "template": {
                "spec": {
                    "requirements": [
                        {"key": "no label", "operator": "Exists"},
                        {"key": names.NODE_POOL_LABEL, "operator": "Exists"},
                        {"key": "team", "operator": "In", "values": []},
                        {"key": "team", "operator": "In", "values": ["a/b"]},
                        {"key": "team", "operator": "Near", "values": ["1"]},
                        {"key": "team", "operator": "Gt", "values": ["many"]},
                    ]
                }
            }
        },
        "taints": {"template": {"spec": {"taints": [NOBODY, {"key": "no taint", "value": "a/b", "effect": "Always"}]}}},
        "times": {"template": {"spec": {"expireAfter": "-1h", "terminationGracePeriod": "soon"}}},
        "limits": {"limits": {"cpu": "-1", "memory": "much"}},
    }
    return Scenario(
        hours=0.5,
        objects=(
            manifests.node_pool("default", requirements=(FOUR,), consolidate_after="20s"),
            *(manifests.node_pool(name, requirements=(FOUR,), taints=(NOBODY,)) for name in wrong),
        ),
        workloads=(Burst(name="app", pods=6, at="2m", lasts="5m", pod=PodShape(cpu="1")),),
        events=(
            at("30s", "patch", _lax_definition()),
            *(at("1m", "patch", spec_of(name, **spec)) for name, spec in wrong.items()),
            *(at("12m", "delete", the_pool(name)) for name in wrong),
        ),
    )


# -- volumes ----------------------------------------------------------------------------------------------------------------


def _volumes() -> Scenario:
    """Volumes of every kind, of which one is never detached: the drain waits for it as long as it may."""
    disk = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/disk"}}
    wish = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    kept = {
        "volumes": [
            {"name": "scratch", "emptyDir": {}},
            {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": {**wish, "storageClassName": "simulated"}}}},
        ]
    }
    plain = {"volumes": [{"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}]}
    to_the_end = [{"key": names.DISRUPTED_TAINT, "operator": "Exists"}, *only_on("timed")["tolerations"]]
    attached = {
        "attacher": manifests.DRIVER,
        "nodeName": "timed",
        "source": {"persistentVolumeName": "somebody-elses"},
    }
    held = {"finalizers": ["example.com/held"]}
    attachment = named("storage.k8s.io/v1", "VolumeAttachment", "forgotten", metadata=held, spec=attached)
    return Scenario(
        hours=0.5,
        objects=(
            manifests.storage_class(),
            manifests.node_pool("default", requirements=(FOUR,), consolidate_after="20s"),
            named("v1", "PersistentVolume", "disk", spec={**disk, "storageClassName": ""}),
            named(
                *("v1", "PersistentVolumeClaim", "disk"),
                namespace="default",
                spec={**wish, "storageClassName": "", "volumeName": "disk"},
            ),
            claim_for_pods("timed", terminationGracePeriod="3m"),
            manifests.deployment("staying", 1, PodShape(spec={**only_on("timed"), **kept, "tolerations": to_the_end})),
            manifests.deployment("plain", 1, PodShape(cpu="100m", spec={**only_on("timed"), **plain})),
        ),
        workloads=(Burst(name="app", pods=4, at="30s", lasts="4m", pod=PodShape(cpu="1", volume="1Gi")),),
        events=(
            at("2m", "create", attachment),
            at("3m", "delete", the_claim("timed")),
            at("9m", "patch", {**attachment, "metadata": {"name": "forgotten", "finalizers": None}}),
            *(
                at("10m", "delete", named("apps/v1", "Deployment", each, namespace="default"))
                for each in ("staying", "plain")
            ),
        ),
    )


STRANGE: Final[Mapping[str, Scenario]] = {
    "strange records": _strange_records(),
    "unchecked pools": _unchecked_pools(),
    "volumes": _volumes(),
}
