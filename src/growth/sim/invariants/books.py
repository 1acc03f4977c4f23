"""Everything that the invariants ask about, kept change by change from the server's own history."""

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any, Final

from growth.api.kinds import Json
from growth.kube.errors import NotFound
from growth.kube.memory import MemoryServer
from growth.kube.memory.selectors import label_selector
from growth.kube.memory.store import Key

MACHINE_LABEL: Final = "growth.dev/kwok-machine"
POOL_LABEL: Final = "karpenter.sh/nodepool"
GROWTH_POOL_LABEL: Final = "growth.dev/pool"
INITIALIZED_LABEL: Final = "karpenter.sh/initialized"
DISRUPTED: Final = "karpenter.sh/disrupted"
SCALE_DOWN: Final = "growth.dev/scale-down"
DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
COLLECTION: Final = "growth-collection"

CLAIMS: Final = ("karpenter.sh", "nodeclaims")
POOLS: Final = ("karpenter.sh", "nodepools")
GROWTH_POOLS: Final = ("growth.dev", "growthpools")
REMOVALS: Final = ("growth.dev", "noderemovalrequests")
NODES: Final = ("", "nodes")
PODS: Final = ("", "pods")
CONFIG_MAPS: Final = ("", "configmaps")
BUDGETS: Final = ("policy", "poddisruptionbudgets")
FOLLOWED: Final = (CLAIMS, POOLS, GROWTH_POOLS, NODES, PODS, CONFIG_MAPS, BUDGETS)

Which = tuple[str, str]


def version_of(group: str) -> str:
    """Of the kinds that are followed."""
    return "v1alpha1" if group == GROWTH_POOLS[0] else "v1"


@dataclasses.dataclass(slots=True)
class Books:
    """Objects by kind and key, and who belongs to whom. `machines` are ours; those of other clusters are nobody's here.

    `cluster` is the identity that our machines carry. What was once ours stays known: `provider_ids`, `made_for`.
    """

    cluster: str
    objects: dict[Which, dict[Key, Json]] = dataclasses.field(default_factory=lambda: {each: {} for each in FOLLOWED})
    machines: dict[str, Json] = dataclasses.field(default_factory=dict)  # by the record's name
    pods_on: dict[str, dict[Key, Json]] = dataclasses.field(default_factory=dict)  # by the node's name
    claim_uids: dict[str, str] = dataclasses.field(default_factory=dict)  # UID → name, of those that are there
    provider_ids: dict[str, None] = dataclasses.field(default_factory=dict)  # of all machines ever
    made_for: dict[str, str] = dataclasses.field(
        default_factory=dict
    )  # claim's UID → UID of its first record, for ever

    @classmethod
    def of(cls, server: MemoryServer, *, cluster: str) -> "Books":
        """As the server has it now, derived from nothing else."""
        books = cls(cluster)
        for group, plural in FOLLOWED:
            try:
                resource = server.resource(group, version_of(group), plural)
            except NotFound:
                continue  # not defined yet
            for stored in server.list(resource).items:
                meta = stored.object["metadata"]
                books.see((group, plural), (meta.get("namespace", ""), meta["name"]), None, stored.object)
        return books

    def see(self, which: Which, key: Key, old: Json | None, new: Json | None) -> None:
        """One change: `old` is None where it was added, `new` where it is gone."""
        kept = self.objects.get(which)
        if kept is None:
            return
        if new is None:
            kept.pop(key, None)
        else:
            kept[key] = new
        if which == CLAIMS:
            if old is not None:
                self.claim_uids.pop(old["metadata"]["uid"], None)
            if new is not None:
                self.claim_uids[new["metadata"]["uid"]] = key[1]
        elif which == PODS:
            self._see_pod(key, old, new)
        elif which == CONFIG_MAPS:
            self._see_record(key, new)

    def _see_pod(self, key: Key, old: Json | None, new: Json | None) -> None:
        before = node_of(old) if old is not None else ""
        if before:
            self.pods_on.get(before, {}).pop(key, None)
        if new is not None and (now := node_of(new)):
            self.pods_on.setdefault(now, {})[key] = new

    def _see_record(self, key: Key, new: Json | None) -> None:
        if new is None:
            self.machines.pop(key[1], None)
        elif new["metadata"].get("labels", {}).get(MACHINE_LABEL) == self.cluster:
            self.machines[key[1]] = new
            self.provider_ids[new["data"].get("providerID", "")] = None
            self.made_for.setdefault(new["data"].get("claimUID", ""), new["metadata"]["uid"])

    # Questions.

    def all(self, which: Which) -> Iterable[Json]:
        return self.objects[which].values()

    def find(self, which: Which, name: str, namespace: str = "") -> Json | None:
        return self.objects[which].get((namespace, name))

    def machine_of(self, claim: Json) -> Json | None:
        uid = claim["metadata"]["uid"]
        return next((each for each in self.machines.values() if each["data"].get("claimUID") == uid), None)

    def nodes_of(self, claim: Json) -> list[Json]:
        provider_id = claim.get("status", {}).get("providerID", "")
        return [each for each in self.all(NODES) if provider_id and provider_id_of(each) == provider_id]

    def claims_on(self, node: Json) -> list[Json]:
        """The claims of the Node's machine: one, unless somebody has been at it."""
        provider_id = provider_id_of(node)
        return [
            each for each in self.all(CLAIMS) if provider_id and each.get("status", {}).get("providerID") == provider_id
        ]

    def budgets_of(self, pod: Json) -> list[Json]:
        """The PodDisruptionBudgets that select the pod."""
        return [each for each in self.all(BUDGETS) if selects(each, pod)]

    def claim_of(self, machine: Json) -> Json | None:
        name = self.claim_uids.get(machine["data"].get("claimUID", ""))
        return None if name is None else self.objects[CLAIMS].get(("", name))

    def claims_of(self, pool: str) -> list[Json]:
        return [each for each in self.all(CLAIMS) if labels(each).get(POOL_LABEL) == pool]

    def unclaimed(self) -> Iterator[tuple[str, Json]]:
        """Machines that nobody has a claim for and nobody has asked to go."""
        for name, machine in self.machines.items():
            if machine["data"].get("state") != "deleting" and machine["data"].get("claimUID") not in self.claim_uids:
                yield name, machine

    def busy(self) -> bool:
        """Whether something is under way: a claim that is not up yet or is going, or a Node that is going."""
        return any(deleting(each) or not has_condition(each, "Initialized") for each in self.all(CLAIMS)) or any(
            deleting(each) for each in self.all(NODES)
        )

    def differences(self, other: "Books") -> list[str]:
        """What these books and others of the same moment do not agree on."""
        found = [
            f"{which[1]}: {sorted(set(mine) ^ set(theirs))[:3]}"
            for which, mine in self.objects.items()
            if mine != (theirs := other.objects[which])
        ]
        pairs: tuple[tuple[str, Any, Any], ...] = (
            ("machines", self.machines, other.machines),
            ("claims by UID", self.claim_uids, other.claim_uids),
            ("pods by node", _filled(self.pods_on), _filled(other.pods_on)),
        )
        return found + [name for name, mine, theirs in pairs if mine != theirs]


def _filled(pods: dict[str, dict[Key, Json]]) -> dict[str, dict[Key, Json]]:
    return {node: each for node, each in pods.items() if each}


def labels(item: Json) -> dict[str, str]:
    return item["metadata"].get("labels") or {}


def annotations(item: Json) -> dict[str, str]:
    return item["metadata"].get("annotations") or {}


def deleting(item: Json) -> bool:
    return bool(item["metadata"].get("deletionTimestamp"))


def has_condition(item: Json, kind: str, status: str = "True") -> bool:
    return any(
        each["type"] == kind and each["status"] == status for each in item.get("status", {}).get("conditions", ())
    )


def provider_id_of(node: Json) -> str:
    return str(node.get("spec", {}).get("providerID", ""))


def node_of(pod: Json) -> str:
    return str(pod["spec"].get("nodeName", ""))


def tainted(node: Json, key: str) -> bool:
    return any(each["key"] == key for each in node.get("spec", {}).get("taints", ()))


def finished(pod: Json) -> bool:
    return pod.get("status", {}).get("phase") in {"Succeeded", "Failed"}


def owner_kinds(pod: Json) -> set[str]:
    return {each["kind"] for each in pod["metadata"].get("ownerReferences", ())}


def selects(budget: Json, pod: Json) -> bool:
    """Whether the PodDisruptionBudget counts for the pod."""
    meta, selector = pod["metadata"], budget["spec"].get("selector")
    return (
        budget["metadata"]["namespace"] == meta["namespace"]
        and selector is not None
        and label_selector(selector)(meta.get("labels") or {})
    )


def holds_node(pod: Json) -> bool:
    """Whether a drain must wait for the pod: it runs, belongs to no node, and does not tolerate the drain's taint."""
    if finished(pod) or deleting(pod) or owner_kinds(pod) & {"DaemonSet", "Node"}:
        return False
    return not any(
        each.get("operator") == "Exists" and each.get("key", "") in {"", DISRUPTED}
        for each in pod["spec"].get("tolerations", ())
    )
