"""Pods."""

from growth.api.kinds import Json
from growth.kube.memory.resources import Generation, Resource, Strategy


class PodStrategy(Strategy):
    status = True
    generation = Generation.SPEC
    finishes_at_once = False

    def prepare_create(self, new: Json) -> None:
        new["status"] = {"phase": "Pending"}

    def grace_seconds(self, stored: Json, asked: int | None) -> int | None:
        spec = stored["spec"]
        grace = spec.get("terminationGracePeriodSeconds", 30) if asked is None else asked
        if grace < 0:
            grace = 1
        phase = stored.get("status", {}).get("phase")
        if not spec.get("nodeName") or phase in {"Failed", "Succeeded"}:
            return 0
        return int(grace)


RESOURCES = (Resource("", "v1", "Pod", "pods", True, PodStrategy(), "pod", ("po",), ("all",)),)
