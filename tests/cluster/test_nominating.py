"""Pods that are told their machines, on a real control plane: kube-scheduler follows a plan that it would not find."""

from tests.cluster.owning import Autoscaled

# A machine holds four small pods or one large one. The small ones come first, and kube-scheduler would spread them.
SMALL, LARGE = 40, 10
MACHINES = SMALL // 4 + LARGE


def test_a_tight_plan_is_nearly_followed(autoscaled: Autoscaled) -> None:
    """A few pods may be tried while their machine is still closed, and are told nothing then; without names a machine more
    would be bought for nearly every large pod.
    """
    autoscaled.pool("tight")
    autoscaled.deploy("small", SMALL, pool="tight", cpu="900m", memory="64Mi")
    autoscaled.deploy("large", LARGE, pool="tight", cpu="3500m", memory="64Mi")
    autoscaled.wait_running("small", SMALL)
    autoscaled.wait_running("large", LARGE)
    bought = {
        each.name for each in autoscaled.writes_of("growth") if each.verb == "create" and each.resource == "nodeclaims"
    }
    told = [each for each in autoscaled.writes_of("growth") if each.resource == "pods" and each.subresource == "status"]
    assert told
    assert MACHINES <= len(bought) <= MACHINES + LARGE // 2
    autoscaled.clear("small", "large", pool="tight")
