"""Pods that are told their machines, on a real control plane: kube-scheduler follows a plan that it would not find."""

from bench.owning import desk
from tests.cluster.owning import Autoscaled

# A machine holds four small pods or one large one. The small ones come first, and kube-scheduler would spread them.
SMALL, LARGE = 40, 10
MACHINES = SMALL // 4 + LARGE


def test_a_tight_plan_is_nearly_followed(autoscaled: Autoscaled) -> None:
    """A few pods may be tried while their machine is still closed, and are told nothing then; without names a machine more
    would be bought for nearly every large pod. The large ones come when the small ones are there: were they tried before them,
    nobody would have to be told anything. The pool comes when all have been tried, so that they are planned for at once.
    """
    autoscaled.deploy("small", SMALL, pool="tight", cpu="900m", memory="64Mi")
    autoscaled.until(lambda: len(_refused(autoscaled, "small")) == SMALL, "no small pod has a node")
    autoscaled.deploy("large", LARGE, pool="tight", cpu="3500m", memory="64Mi")
    autoscaled.until(lambda: len(_refused(autoscaled, "large")) == LARGE, "no large pod has a node")
    autoscaled.pool("tight")
    autoscaled.wait_running("small", SMALL)
    autoscaled.wait_running("large", LARGE)
    bought = {
        each.name for each in autoscaled.writes_of("growth") if each.verb == "create" and each.resource == "nodeclaims"
    }
    told = [each for each in autoscaled.writes_of("growth") if each.resource == "pods" and each.subresource == "status"]
    assert told
    assert MACHINES <= len(bought) < MACHINES + LARGE
    autoscaled.clear("small", "large", pool="tight")


def test_a_name_that_came_to_nothing_is_taken_back(autoscaled: Autoscaled) -> None:
    """kube-scheduler leaves a pod alone for five minutes whose name was written after it had tried the pod in vain, and nobody
    plans for pods that have a name.
    """
    autoscaled.pool("taken")
    autoscaled.deploy("taker", 1, pool="taken", cpu="3500m", memory="64Mi")
    node = autoscaled.wait_running("taker", 1)[0]["spec"]["nodeName"]
    autoscaled.deploy("stranded", 1, pool="later", cpu="3500m", memory="64Mi")
    name = autoscaled.until(lambda: _refused(autoscaled, "stranded"), "kube-scheduler has found no node")[0]
    autoscaled.desk.merge(f"{desk.PODS}/{name}/status", {"status": {"nominatedNodeName": node}})
    autoscaled.pool("later")
    autoscaled.until(lambda: autoscaled.running("stranded"), "the pod has a machine of its own", seconds=120)
    autoscaled.clear("taker", pool="taken")
    autoscaled.clear("stranded", pool="later")


def _refused(autoscaled: Autoscaled, app: str) -> list[str]:
    """The pods for which kube-scheduler has found no node."""
    return [
        each["metadata"]["name"]
        for each in autoscaled.pods(app)
        if any(one.get("reason") == "Unschedulable" for one in each.get("status", {}).get("conditions", []))
    ]
