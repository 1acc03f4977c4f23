"""Headroom, pause and overlays at work on a real control plane."""

from bench.owning import desk
from growth.api.kinds import Json
from tests.cluster.owning import Autoscaled, is_true

BUFFERS = "/apis/autoscaling.x-k8s.io/v1beta1/namespaces/default/capacitybuffers"
TEMPLATES = "/api/v1/namespaces/default/podtemplates"
OVERLAYS = "/apis/karpenter.sh/v1alpha1/nodeoverlays"
PAUSED = "growth.dev/paused"
DONGLE = "example.com/dongle"


def template_of(pool: str) -> Json:
    container = {"name": "main", "image": "example", "resources": {"requests": {"cpu": "1", "memory": "512Mi"}}}
    spec = {
        "containers": [container],
        "nodeSelector": {"karpenter.sh/nodepool": pool},
        "tolerations": [{"key": "pool", "value": pool, "effect": "NoSchedule"}],
    }
    return {"metadata": {"labels": {"app": "headroom"}}, "spec": spec}


def test_a_buffer_keeps_machines_for_pods_that_do_not_exist(autoscaled: Autoscaled) -> None:
    """Room for four of one cpu is two machines of four; the pods that come find it, and without the buffer it goes."""
    autoscaled.pool("roomy")
    template = {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": {"name": "headroom"},
        "template": template_of("roomy"),
    }
    autoscaled.desk.create(TEMPLATES, template)
    buffer = {
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": {"name": "headroom"},
        "spec": {"podTemplateRef": {"name": "headroom"}, "replicas": 4},
    }
    autoscaled.desk.create(BUFFERS, buffer)
    kept = {each["metadata"]["uid"] for each in autoscaled.wait_matched("roomy", 2)}
    autoscaled.until(
        lambda: autoscaled.desk.get(f"{BUFFERS}/headroom").get("status", {}).get("replicas") == 4,
        "the buffer says how much",
    )
    autoscaled.deploy("guest", 2, pool="roomy")
    autoscaled.wait_running("guest", 2)
    assert kept <= {each["metadata"]["uid"] for each in autoscaled.claims("roomy")}
    autoscaled.desk.delete(f"{BUFFERS}/headroom")
    autoscaled.desk.delete(f"{desk.APPS}/guest")
    autoscaled.wait_gone("roomy")
    autoscaled.clear(pool="roomy")


def test_a_paused_pool_buys_nothing_and_says_so(autoscaled: Autoscaled) -> None:
    """A pool that was paused before its pods came stays empty while another buys; released, it buys."""
    autoscaled.pool("still", annotations={PAUSED: "true"})
    autoscaled.pool("busy")
    autoscaled.deploy("still", 1, pool="still")
    autoscaled.deploy("busy", 1, pool="busy")
    autoscaled.wait_running("busy", 1)
    autoscaled.until(
        lambda: is_true(autoscaled.desk.get(f"{desk.POOLS}/still"), "Paused"), "a condition tells of the pause"
    )
    assert autoscaled.claims("still") == []

    autoscaled.desk.merge(f"{desk.POOLS}/still", {"metadata": {"annotations": {PAUSED: None}}})
    autoscaled.wait_running("still", 1)
    autoscaled.until(
        lambda: not is_true(autoscaled.desk.get(f"{desk.POOLS}/still"), "Paused"), "the condition says that it is over"
    )
    autoscaled.clear("still", pool="still")
    autoscaled.clear("busy", pool="busy")


def test_an_overlay_changes_what_is_bought(autoscaled: Autoscaled) -> None:
    """A type that an overlay makes nearly free is bought though a smaller one would do."""
    autoscaled.pool("priced", sizes=("2", "4", "8"))
    overlay = {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": {"name": "sale"},
        "spec": {
            "requirements": [
                {"key": "karpenter.sh/nodepool", "operator": "In", "values": ["priced"]},
                {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m-8x-amd64-linux"]},
            ],
            "price": "0.001",
        },
    }
    autoscaled.desk.create(OVERLAYS, overlay)
    autoscaled.until(lambda: is_true(autoscaled.desk.get(f"{OVERLAYS}/sale"), "Ready"), "the overlay is ready")
    autoscaled.deploy("thrifty", 1, pool="priced")
    autoscaled.wait_running("thrifty", 1)
    (node,) = autoscaled.nodes("priced")
    assert node["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "m-8x-amd64-linux"
    autoscaled.desk.delete(f"{OVERLAYS}/sale")
    autoscaled.clear("thrifty", pool="priced")
