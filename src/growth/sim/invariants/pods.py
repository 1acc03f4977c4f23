"""Safety of pods: none goes that is protected, and no machine from under those that could still leave."""

import math
from collections.abc import Iterator
from typing import Final

from growth.api.kinds import Json
from growth.operator.wiring import Role
from growth.sim.invariants.books import (
    CONFIG_MAPS,
    DO_NOT_DISRUPT,
    MACHINE_LABEL,
    NODES,
    PODS,
    annotations,
    has_condition,
    holds_node,
    labels,
    provider_id_of,
)
from growth.sim.invariants.facts import begins_to_go, voluntary
from growth.sim.invariants.invariant import Case, Complaint, Quiet
from growth.sim.invariants.moves import bound_before
from growth.sim.ports import EPOCH
from growth.sim.seams import Step
from growth.units import parse_time

DEADLINE: Final = "karpenter.sh/nodeclaim-termination-timestamp"
DEFAULT_GRACE_SECONDS: Final = 30


class Protected(Quiet):
    """Shared by the two promises about pods: no pod is removed past its protection, and no machine from under it."""

    def _past_deadline(self, claim: Json | None, pod: Json, case: Case) -> bool:
        """Whether the pod had to begin to leave when the request left, to be gone when the claim's time is over."""
        text = annotations(claim).get(DEADLINE) if claim is not None else None
        if text is None:
            return False
        grace = pod["spec"].get("terminationGracePeriodSeconds", DEFAULT_GRACE_SECONDS)
        begins: float = (parse_time(text) - EPOCH).total_seconds() - grace
        left = case.sent if math.isfinite(case.sent) else case.now
        return left + case.skew >= begins

    def _losses(self, step: Step, case: Case) -> Iterator[tuple[Json, str]]:
        """Pods that this change takes away without asking the server's eviction, and how."""
        if not step.actor.is_growth or step.old is None:
            return
        books = case.books
        if step.which == PODS and step.verb == "delete" and begins_to_go(step):
            node = books.find(NODES, step.last["spec"].get("nodeName", ""))
            if node is not None and not self._past_deadline(case.claim_on(node), step.last, case):
                yield step.old, "deleted past the eviction"
        elif (
            step.which == CONFIG_MAPS
            and step.new is not None
            and step.actor.role is Role.CLOUD
            and labels(step.new).get(MACHINE_LABEL) == books.cluster
            and step.new["data"].get("state") == "deleting" != step.old["data"].get("state")
        ):
            claim = books.claim_of(step.new)
            provider_id = step.new["data"]["providerID"]
            for node in books.all(NODES):
                registered = "karpenter.sh/registered" in labels(node)
                if provider_id_of(node) == provider_id and registered and has_condition(node, "Ready"):
                    for pod in books.pods_on.get(node["metadata"]["name"], {}).values():
                        late = self._past_deadline(claim, pod, case)
                        if holds_node(pod) and bound_before(pod, case) and not late:
                            yield pod, f"on machine {step.key[1]} that is taken down"


class DisruptionBudgets(Protected):
    name = "pdb"
    promise = "no pod goes that its PodDisruptionBudget wants to stay"

    def step(self, step: Step, case: Case) -> Iterator[Complaint]:
        for pod, how in self._losses(step, case):
            name = pod["metadata"]["name"]
            for budget in case.books.budgets_of(pod):
                said = f"pod {name} of budget {budget['metadata']['name']} was {how}"
                yield Complaint(said, (name, step.key[1]))


class DoNotDisrupt(Protected):
    name = "do-not-disrupt"
    promise = "no pod goes, and no node voluntarily, that is marked do-not-disrupt"

    def step(self, step: Step, case: Case) -> Iterator[Complaint]:
        for pod, how in self._losses(step, case):
            if annotations(pod).get(DO_NOT_DISRUPT) == "true":
                yield Complaint(f"protected pod {pod['metadata']['name']} was {how}", (pod["metadata"]["name"],))
        evicted = step.actor.is_growth and step.verb == "evict" and step.which == PODS and step.old is not None
        if evicted and annotations(step.last).get(DO_NOT_DISRUPT) == "true":
            yield Complaint(f"protected pod {step.key[1]} was evicted", (step.key[1],))
        node = voluntary(step, case)
        if node is not None and annotations(node).get(DO_NOT_DISRUPT) == "true":
            yield Complaint(f"the protected Node {node['metadata']['name']} was disrupted", (step.key[1],))


class Drained(Protected):
    name = "drain"
    promise = "no machine goes from under pods that could still leave"

    def step(self, step: Step, case: Case) -> Iterator[Complaint]:
        if step.which == CONFIG_MAPS:
            for pod, how in self._losses(step, case):
                yield Complaint(f"pod {pod['metadata']['name']} ran {how}", (pod["metadata"]["name"], step.key[1]))
