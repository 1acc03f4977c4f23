"""What a pass says about itself: its Decision and the sentences on pods. Pure."""

import collections
import datetime as dt
from collections.abc import Iterable, Sequence

from growth.api import names
from growth.api.decisions import DecisionAction, DecisionCost, DecisionReason, DecisionSpec, UnschedulablePods
from growth.cluster.snapshot import Snapshot
from growth.controllers.decisions import ACTED, BLOCKED, NOTHING, WOULD_ACT
from growth.planning.plan import PlannedClaim, Reason, Unplaced
from growth.units.money import NANO, Money

CONTROLLER = "provisioning"


def decision(
    *,
    at: dt.datetime,
    revision: int,
    snapshot: Snapshot,
    bought: Sequence[tuple[str, PlannedClaim, int]],
    placed: int,
    unplaced: Sequence[Unplaced],
    observing: bool,
    note: str = "",
    lower_bound: int | None = None,
) -> DecisionSpec:
    """The pass in one object. `bought` are (name of the claim or request, what was planned, number of its pods).

    `lower_bound` is what machines for the planned pods cost at least; `note` stands behind the summary.
    """
    currency = snapshot.currency
    before = [node.price for node in snapshot.nodes if node.pool is not None]
    known = sum(price for price in before if price is not None)
    added = sum(planned.price for _, planned, _ in bought)
    outcome = BLOCKED if unplaced else NOTHING
    if bought:
        outcome = WOULD_ACT if observing else ACTED
    return DecisionSpec(
        at=at,
        controller=CONTROLLER,
        outcome=outcome,
        revision=str(revision),
        summary="; ".join(
            part
            for part in (
                summary(bought, placed=placed, unplaced=len(unplaced), currency=currency, observing=observing),
                note,
            )
            if part
        ),
        actions=tuple(
            DecisionAction(
                verb="create",
                object="" if observing else f"{_kind(planned)}/{name}",
                node_pool=str(planned.pool),
                instance_type=planned.instance_type,
                price=planned.price / NANO,
                pods=pods,
                why=_why(planned, currency),
            )
            for name, planned, pods in bought
        ),
        unschedulable=tuple(grouped(unplaced)),
        cost=DecisionCost(
            currency=currency,
            before=known / NANO if None not in before else None,
            after=(known + added) / NANO if None not in before else None,
            lower_bound=(known + lower_bound) / NANO if lower_bound is not None and None not in before else None,
        ),
    )


def nothing(*, at: dt.datetime, revision: int, note: str) -> DecisionSpec:
    """A pass without demands. What the nodes cost is left out: it changes without any pass deciding so."""
    told = summary((), placed=0, unplaced=0, currency="", observing=False)
    return DecisionSpec(
        at=at, controller=CONTROLLER, outcome=NOTHING, revision=str(revision), summary=f"{told}; {note}"
    )


def summary(
    bought: Sequence[tuple[str, PlannedClaim, int]], *, placed: int, unplaced: int, currency: str, observing: bool
) -> str:
    """The pass in a sentence."""
    parts = []
    if bought:
        kinds = collections.Counter(planned.instance_type for _, planned, _ in bought)
        listed = ", ".join(f"{number} × {name}" for name, number in sorted(kinds.items()))
        price = Money(sum(planned.price for _, planned, _ in bought), currency)
        pods = sum(pods for _, _, pods in bought)
        parts.append(f"{'would buy' if observing else 'bought'} {listed} at {price}/h for {pods} pods")
    if placed:
        parts.append(f"{placed} pods have room on nodes that exist or are coming")
    if unplaced:
        parts.append(f"{unplaced} pods cannot be placed")
    return "; ".join(parts) or "no pod waits for a machine"


def _kind(planned: PlannedClaim) -> str:
    return "noderequest" if planned.pool.group == names.GROWTH else "nodeclaim"


def _why(planned: PlannedClaim, currency: str) -> str:
    where = f"{planned.zone}, {planned.capacity_type}"
    if planned.next_best is None:
        # A claim lists what is near the price of the cheapest: others may hold the pods too, and cost much more.
        return f"the cheapest that would do, with no other near its price ({where})"
    name, price = planned.next_best
    most = f", at most {Money(planned.max_price, currency)}/h" if planned.lowest_max_price > price else ""
    return (
        f"the cheapest of {len(planned.instance_types)} types that would do ({where}); next {name} at"
        f" {Money(price, currency)}/h{most}"
    )


def grouped(unplaced: Iterable[Unplaced]) -> Iterable[UnschedulablePods]:
    """Pods with equal reasons in one entry, most pods first."""
    by_reasons: dict[tuple[Reason, ...], list[str]] = {}
    for each in unplaced:
        by_reasons.setdefault(each.reasons, []).append(each.pod)
    for reasons, pods in sorted(by_reasons.items(), key=lambda pair: -len(pair[1])):
        yield UnschedulablePods(
            pods=len(pods),
            example=min(pods),
            reasons=tuple(
                DecisionReason(
                    node_pool=str(reason.pool) if reason.pool is not None else "",
                    filter=reason.filter.value,
                    message=reason.message,
                )
                for reason in reasons
            ),
        )


def failure(reasons: Sequence[Reason]) -> str:
    """Why a pod has no place, for its event."""
    told = "; ".join(f"NodePool {each.pool}: {each.message}" if each.pool else each.message for each in reasons)
    return f"Failed to schedule pod, {told or 'no reason is known'}"


def listed(pods: Sequence[str], *, most: int = 5) -> str:
    """A few of them by name, for a log line."""
    shown = ", ".join(pods[:most])
    return f"{shown} and {len(pods) - most} other(s)" if len(pods) > most else shown
