"""Small histories of a cluster, step by step, as a witness would tell them."""

from typing import Any

from growth.api.kinds import Json
from growth.operator.wiring import Role
from growth.sim.invariants.books import CLAIMS, CONFIG_MAPS, NODES, PODS, POOLS, Books
from growth.sim.invariants.invariant import Case, Invariant
from growth.sim.seams import Actor, Step

CLUSTER = "ours"
GROWTH = Actor("growth-a", "growth-a-1", Role.GROWTH)
CLOUD = Actor("growth-a", "growth-a-1", Role.CLOUD)
ADMIN = Actor("admin")
HEARD = {"pods", "nodes", "nodeclaims", "nodepools"}
GOING = "2030-01-07T08:00:00Z"


class History:
    """Feeds an invariant with changes; `said` is what it has complained about so far."""

    def __init__(self, invariant: Invariant, *, heard: set[str] | None = None) -> None:
        self.case = Case(books=Books(CLUSTER), heard={GROWTH.process: HEARD if heard is None else heard})
        self.said: list[str] = []
        self._invariant = invariant
        self._steps = 0

    def put(
        self,
        which: tuple[str, str],
        body: Json,
        *,
        by: Actor = ADMIN,
        verb: str = "",
        at: float = 0.0,
        sent: float | None = None,
    ) -> None:
        """The object as it is from now on; a verb other than what it looks like is said, and when the request left."""
        key = _key(body)
        old = self.case.books.objects.get(which, {}).get(key)
        told = verb or ("create" if old is None else "patch")
        self._step(which, key, old, body, by=by, verb=told, at=at, sent=sent)

    def remove(
        self, which: tuple[str, str], body: Json, *, by: Actor = ADMIN, verb: str = "delete", at: float = 0.0
    ) -> None:
        key = _key(body)
        old = self.case.books.objects.get(which, {}).get(key)
        self._step(which, key, old, None, by=by, verb=verb, at=at, last=body)

    def look(self, at: float) -> None:
        """The whole is judged."""
        self.case.now = at
        self.said += [each.said for each in self._invariant.state(self.case)]

    def _step(
        self,
        which: tuple[str, str],
        key: tuple[str, str],
        old: Json | None,
        new: Json | None,
        *,
        by: Actor,
        verb: str,
        at: float,
        last: Json | None = None,
        sent: float | None = None,
    ) -> None:
        self._steps += 1
        case = self.case
        now = max(at, case.now)
        case.sent = now if sent is None else sent
        whole = new or last
        assert whole is not None
        step = Step(
            number=self._steps,
            at=now,
            revision=self._steps,
            actor=by,
            verb=verb,
            asked=(which[1], key[0], key[1]),
            which=which,
            key=key,
            old=old,
            new=new,
            last=whole,
        )
        case.see(step)
        self.said += [each.said for each in self._invariant.step(step, case)]


def _key(body: Json) -> tuple[str, str]:
    return body["metadata"].get("namespace", ""), body["metadata"]["name"]


def going(body: Json) -> Json:
    return {**body, "metadata": {**body["metadata"], "deletionTimestamp": GOING}}


def pool(name: str = "default", *, budget: str = "100%", **limits: str) -> Json:
    spec = {"disruption": {"budgets": [{"nodes": budget}]}, "limits": limits, "template": {"spec": {}}}
    return {"metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"}, "spec": spec}


def claim(name: str = "one", *, initialized: bool = True, group: str = "karpenter.kwok.sh", **meta: Any) -> Json:
    conditions = [{"type": "Initialized", "status": "True"}] if initialized else []
    return {
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "resourceVersion": "1",
            "labels": {"karpenter.sh/nodepool": "default"},
            "finalizers": ["karpenter.sh/termination"],
            "creationTimestamp": GOING,
            **meta,
        },
        "spec": {"nodeClassRef": {"group": group}},
        "status": {"providerID": f"kwok://{name}", "conditions": conditions},
    }


def machine(
    name: str = "one", *, claim_uid: str = "", cluster: str = CLUSTER, state: str = "running", uid: str = ""
) -> Json:
    return {
        "metadata": {
            "name": f"kwok-{name}",
            "namespace": "growth",
            "uid": uid or f"uid-kwok-{name}",
            "resourceVersion": "1",
            "labels": {"growth.dev/kwok-machine": cluster},
        },
        "data": {
            "claimUID": claim_uid or f"uid-{name}",
            "providerID": f"kwok://{name}",
            "state": state,
            "instanceType": "small",
            "zone": "a",
            "capacityType": "on-demand",
        },
    }


def node(
    name: str = "one", *, provider_id: str | None = None, tainted: bool = False, ready: bool = True, **meta: Any
) -> Json:
    taints = [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}] if tainted else []
    return {
        "metadata": {
            "name": name,
            "uid": f"uid-node-{name}",
            "resourceVersion": "1",
            "labels": {"karpenter.sh/registered": "true"},
            **meta,
        },
        "spec": {"providerID": f"kwok://{name}" if provider_id is None else provider_id, "taints": taints},
        "status": {"conditions": [{"type": "Ready", "status": "True" if ready else "Unknown"}]},
    }


def pod(name: str = "web", *, on: str = "one", labels: dict[str, str] | None = None, **annotations: str) -> Json:
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-pod-{name}",
            "labels": labels or {},
            "annotations": {f"karpenter.sh/{key.replace('_', '-')}": value for key, value in annotations.items()},
        },
        "spec": {"nodeName": on, "containers": []},
        "status": {"phase": "Running"},
    }


def running(invariant: Invariant, *names: str, tainted: bool = True, budget: str = "100%", **how: Any) -> History:
    """A pool with machines that are up, each with its claim and Node."""
    history = History(invariant, **how)
    history.put(POOLS, pool(budget=budget))
    for name in names or ("one",):
        history.put(CLAIMS, claim(name), by=GROWTH)
        history.put(CONFIG_MAPS, machine(name), by=CLOUD)
        history.put(NODES, node(name, tainted=tainted))
    assert not history.said
    return history


__all__ = ["ADMIN", "CLAIMS", "CLOUD", "CONFIG_MAPS", "GROWTH", "NODES", "PODS", "POOLS", "History"]
