"""Draining on a real control plane: what protects a pod, and for how long."""

from bench.owning import desk
from growth.api.kinds import Json
from tests.cluster.owning import Autoscaled

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
DISRUPTED = "karpenter.sh/disrupted"


def budget(name: str) -> Json:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": name}}},
    }


def delete_claim_of(autoscaled: Autoscaled, pool: str) -> Json:
    """Asks for the end of the pool's only claim."""
    (claim,) = autoscaled.wait_matched(pool, 1)
    autoscaled.desk.delete(f"{desk.CLAIMS}/{claim['metadata']['name']}")
    return claim


def delete_held_claim_of(autoscaled: Autoscaled, pool: str) -> Json:
    """The same for one that something keeps from going; returns when its Node is tainted."""
    claim = delete_claim_of(autoscaled, pool)
    node = f"{desk.NODES}/{claim['status']['nodeName']}"

    def tainted() -> bool:
        taints = autoscaled.desk.get(node)["spec"].get("taints", [])
        return any((each["key"], each["effect"]) == (DISRUPTED, "NoSchedule") for each in taints)

    autoscaled.until(tainted, "the Node is tainted")
    return claim


def uids(pods: list[Json]) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods}


def test_a_disruption_budget_of_zero_holds_a_drain(autoscaled: Autoscaled) -> None:
    """The pod stays on the doomed machine until the budget goes; then it moves and the machine is gone."""
    autoscaled.pool("guarded")
    autoscaled.deploy("guarded", 1, pool="guarded")
    before = uids(autoscaled.wait_running("guarded", 1))
    autoscaled.desk.create(BUDGETS, budget("guarded"))
    autoscaled.until(
        lambda: autoscaled.desk.get(f"{BUDGETS}/guarded").get("status", {}).get("expectedPods") == 1,
        "the budget counts",
    )
    claim = delete_held_claim_of(autoscaled, "guarded")
    autoscaled.until(
        lambda: autoscaled.events("FailedDraining", about=claim["status"]["nodeName"]),
        "an event says that the drain is held",
    )
    assert uids(autoscaled.running("guarded")) == before

    autoscaled.desk.delete(f"{BUDGETS}/guarded")
    autoscaled.until(
        lambda: not autoscaled.desk.exists(f"{desk.CLAIMS}/{claim['metadata']['name']}"), "the claim is gone"
    )
    assert not uids(autoscaled.wait_running("guarded", 1)) & before
    autoscaled.clear("guarded", pool="guarded")


def test_a_grace_period_ends_what_a_budget_holds(autoscaled: Autoscaled) -> None:
    """With a termination grace of some seconds even a budget of zero does not keep the machine."""
    autoscaled.pool("timed", grace="5s")
    autoscaled.deploy("timed", 1, pool="timed")
    before = uids(autoscaled.wait_running("timed", 1))
    autoscaled.desk.create(BUDGETS, budget("timed"))
    claim = delete_claim_of(autoscaled, "timed")
    autoscaled.until(
        lambda: not autoscaled.desk.exists(f"{desk.CLAIMS}/{claim['metadata']['name']}"), "the claim is gone"
    )
    assert not uids(autoscaled.wait_running("timed", 1)) & before
    autoscaled.desk.delete(f"{BUDGETS}/timed")
    autoscaled.clear("timed", pool="timed")


def test_a_pod_that_must_not_be_disrupted_keeps_its_machine(autoscaled: Autoscaled) -> None:
    """The drain leaves it alone until it ends by itself."""
    autoscaled.pool("precious")
    autoscaled.deploy("precious", 1, pool="precious", annotations={"karpenter.sh/do-not-disrupt": "true"})
    autoscaled.deploy("common", 1, pool="precious")
    kept = uids(autoscaled.wait_running("precious", 1))
    moved = uids(autoscaled.wait_running("common", 1))
    claim = delete_held_claim_of(autoscaled, "precious")
    # The other pod was evicted, so the drain is under way; the precious one is still there.
    autoscaled.until(lambda: len(now := uids(autoscaled.running("common"))) == 1 and not now & moved, "the other moved")
    assert uids(autoscaled.running("precious")) == kept
    assert autoscaled.desk.exists(f"{desk.CLAIMS}/{claim['metadata']['name']}")

    autoscaled.desk.delete(f"{desk.APPS}/precious")
    autoscaled.until(
        lambda: not autoscaled.desk.exists(f"{desk.CLAIMS}/{claim['metadata']['name']}"), "the claim is gone"
    )
    autoscaled.clear("common", pool="precious")
