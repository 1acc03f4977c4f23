"""Static pools, lowered limits and age on a real control plane: `kubectl scale` works, and every write is accepted."""

from typing import Any

from bench.owning import desk
from tests.cluster.owning import Autoscaled, is_true, node_pool

ALWAYS = {"budgets": [{"nodes": "100%"}], "consolidateAfter": "Never"}


def static(autoscaled: Autoscaled, name: str, **spec: Any) -> None:
    body = node_pool(name)
    body["spec"] = {**body["spec"], "disruption": ALWAYS, **spec}
    autoscaled.desk.create(desk.POOLS, body)


def test_a_static_pool_is_scaled_by_kubectl_and_renewed_in_place(autoscaled: Autoscaled) -> None:
    """Machines without a pod, more and fewer of them; at a Hard limit what drifted goes first, and a condition says so."""
    static(autoscaled, "steady", replicas=2, limits={"nodes": "3"})
    autoscaled.wait_matched("steady", 2)
    autoscaled.kubectl("scale", "nodepools.karpenter.sh", "steady", "--replicas=3")
    old = {each["metadata"]["uid"] for each in autoscaled.wait_matched("steady", 3)}
    autoscaled.wait_counted("steady", 3)
    pool = f"{desk.POOLS}/steady"
    autoscaled.until(lambda: is_true(autoscaled.desk.get(pool), "ReplacesInPlace"), "the pool says how it renews")
    autoscaled.desk.merge(pool, {"spec": {"template": {"metadata": {"labels": {"edition": "2"}}}}})
    autoscaled.until(
        lambda: (
            len(claims := autoscaled.claims("steady")) == 3
            and all(
                each["metadata"]["labels"].get("edition") == "2" and is_true(each, "Initialized") for each in claims
            )
        ),
        "all are of the new template",
    )
    assert not old & {each["metadata"]["uid"] for each in autoscaled.wait_matched("steady", 3)}
    autoscaled.kubectl("scale", "nodepools.karpenter.sh", "steady", "--replicas=0")
    autoscaled.wait_gone("steady")
    autoscaled.clear(pool="steady")


def test_a_lowered_limit_takes_what_is_too_many(autoscaled: Autoscaled) -> None:
    """Past a budget of none, at once; what was on the nodes waits for a place, and the event on the claims says why."""
    body = node_pool("lowered", limits={"nodes": "4"})
    body["spec"]["disruption"] = {"budgets": [{"nodes": "0"}], "consolidateAfter": "Never"}
    autoscaled.desk.create(desk.POOLS, body)
    autoscaled.deploy("wide", 4, pool="lowered", cpu="3")
    autoscaled.wait_running("wide", 4)
    claims = {each["metadata"]["name"] for each in autoscaled.wait_matched("lowered", 4)}
    autoscaled.desk.merge(f"{desk.POOLS}/lowered", {"spec": {"limits": {"nodes": "1"}}})
    left = {each["metadata"]["name"] for each in autoscaled.wait_matched("lowered", 1)}
    (gone, *_) = sorted(claims - left)
    (event,) = autoscaled.events("DisruptionTerminating", about=gone)[:1]
    assert event["message"].endswith(": Overprovisioned")
    autoscaled.clear("wide", pool="lowered")


def test_a_machine_goes_at_its_age(autoscaled: Autoscaled) -> None:
    """A minute after it was asked for, though a pod runs there; the pod gets another."""
    body = node_pool("mortal")
    body["spec"]["template"]["spec"]["expireAfter"] = "1m"
    body["spec"]["disruption"] = {"budgets": [{"nodes": "0"}], "consolidateAfter": "Never"}
    autoscaled.desk.create(desk.POOLS, body)
    autoscaled.deploy("tenant", 1, pool="mortal")
    autoscaled.wait_running("tenant", 1)
    first = {each["metadata"]["uid"] for each in autoscaled.claims("mortal")}
    autoscaled.until(
        lambda: (there := {each["metadata"]["uid"] for each in autoscaled.claims("mortal")}) and not there & first,
        "another machine has taken its place",
    )
    autoscaled.clear("tenant", pool="mortal")
