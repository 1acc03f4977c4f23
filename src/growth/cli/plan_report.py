"""A plan as people and programs see it. The shape of the JSON is a contract."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from growth.cli.disruption_report import Disruptions
from growth.cli.output import Section
from growth.cluster.assemble import Waiting
from growth.cluster.snapshot import Snapshot
from growth.planning.plan import Plan, PlannedClaim, Reason
from growth.units.money import HOURS_PER_MONTH, NANO, Hours, Money, monthly, print_hourly, print_monthly
from growth.units.resources import quantities


@dataclasses.dataclass(frozen=True, kw_only=True)
class Report:
    """What was planned, and from what. `hours_of_month` is how many hours of a month the cloud bills.

    `disruptions` None: nobody asked what would be removed.
    """

    plan: Plan
    snapshot: Snapshot
    pods: int
    seconds: float
    waiting: tuple[Waiting, ...] = ()
    hours_of_month: Hours = HOURS_PER_MONTH
    disruptions: Disruptions | None = None

    def as_json(self) -> dict[str, Any]:
        """As documented; prices and sums are exact to a billionth."""
        plan = self.plan
        return {
            "nodeClaims": [self._claim(claim) for claim in plan.claims],
            "existingNodes": [{"name": node.name, "pods": list(node.pods)} for node in plan.filled],
            "unschedulable": [
                {"pod": each.pod, "reasons": [_reason(reason) for reason in each.reasons]} for each in plan.unplaced
            ],
            "summary": {
                "pods": self.pods,
                "nodes": len(plan.claims),
                "hourly": plan.hourly / NANO,
                "maxHourly": plan.max_hourly / NANO,
                "currency": plan.currency,
                "objective": _units(plan.objective),
                "lowerBound": _units(plan.lower_bound),
                "boundIgnores": list(plan.bound_ignores),
                "planned": _units(plan.planned),
                "rehearsed": _units(plan.rehearsed),
                "nominates": plan.told,
                "seconds": round(self.seconds, 3),
                "packer": plan.packer,
                "existingHourly": None if self.unpriced else self._existing() / NANO,
                "unpriced": list(self.unpriced),
            },
            **({} if self.disruptions is None else self.disruptions.as_json()),
        }

    @property
    def unpriced(self) -> tuple[str, ...]:
        """The nodes whose price is not known."""
        return tuple(sorted(node.name for node in self.snapshot.nodes if node.price is None))

    def _existing(self) -> int:
        return sum(node.price or 0 for node in self.snapshot.nodes)

    def _claim(self, claim: PlannedClaim) -> dict[str, Any]:
        return {
            "nodePool": str(claim.pool),
            "instanceType": claim.instance_type,
            "zone": claim.zone,
            "capacityType": claim.capacity_type,
            "price": claim.price / NANO,
            "maxPrice": claim.max_price / NANO,
            "instanceTypes": list(claim.instance_types),
            "requests": quantities(claim.requests),
            "pods": list(claim.pods),
            "why": self.why(claim),
        }

    def why(self, claim: PlannedClaim) -> str:
        """Why this offering, and what would come next."""
        price = print_hourly(self._money(claim.price))
        number = len(claim.instance_types)
        chosen = f"{claim.instance_type} ({claim.capacity_type}) in {claim.zone} at {price}"
        if claim.kept:
            return (
                f"NodePool {claim.pool} keeps {_count(claim.kept, 'machine')} of this type without load (min); {chosen}"
            )
        if claim.min_values_relaxed:
            chosen = f"minValues of the pool were lowered for it; {chosen}"
        if claim.spare:
            chosen = f"it has room beyond its pods, which kube-scheduler spreads; {chosen}"
        if claim.next_best is None:
            return f"{chosen} is the only type of NodePool {claim.pool} that holds its pods{self._reach(claim)} and within the limits"
        name, cost = claim.next_best
        more = f"{name} at {print_hourly(self._money(cost))}"
        return f"{chosen} is the cheapest of {number} types that hold its pods{self._reach(claim)}; the next best is {more}"

    def _reach(self, claim: PlannedClaim) -> str:
        """How dear a type may be to be listed, in words."""
        if claim.lowest_max_price * 100 > claim.price * self.plan.flexibility and not claim.repriced:
            return f" for at most {print_hourly(self._money(claim.max_price))}, which minValues need"
        return f" within {self.plan.flexibility / 100:g} times its price"

    def _money(self, nano: int) -> Money:
        return Money(nano, self.plan.currency)

    # -- for people -----------------------------------------------------------------------------------------------

    def sections(self) -> Iterator[Section]:
        """(title, headings, rows) of each table that has rows."""
        claims = list(self._claim_rows())
        if claims:
            headings = ("count", "pool", "type", "zone", "terms", "price", "at most", "pods", "why")
            yield "To buy", headings, claims
        if self.plan.filled:
            rows: list[tuple[object, ...]] = [(node.name, len(node.pods), node.pods[0]) for node in self.plan.filled]
            yield "Existing nodes that take pods", ("node", "pods", "for example"), rows
        unplaced = list(self._unplaced_rows())
        if unplaced:
            yield "Pods without a place", ("pods", "for example", "pool", "filter", "reason"), unplaced
        if self.waiting:
            yield "Pods that wait for something else", ("pods", "for example", "waits for"), list(self._waiting_rows())
        if self.disruptions is not None:
            yield from self.disruptions.sections()

    def _claim_rows(self) -> Iterator[tuple[object, ...]]:
        """Equal machines on one row, dearest first."""
        groups: dict[tuple[str, str, str, str, int, int, int], list[PlannedClaim]] = {}
        for claim in self.plan.claims:
            terms = (claim.capacity_type, claim.price, claim.max_price, claim.kept)
            groups.setdefault((str(claim.pool), claim.instance_type, claim.zone, *terms), []).append(claim)
        for (pool, kind, zone, capacity_type, price, most, _), claims in sorted(
            groups.items(), key=lambda each: (-each[0][4], each[0])
        ):
            pods = sum(len(claim.pods) for claim in claims)
            yield (
                len(claims),
                pool,
                kind,
                zone,
                capacity_type,
                print_hourly(self._money(price)),
                print_hourly(self._money(most)),
                pods,
                self._short_why(claims[0]),
            )

    def _short_why(self, claim: PlannedClaim) -> str:
        if claim.kept:
            return f"kept without load (min {claim.kept})"
        if claim.next_best is None:
            return "the only type that holds them"
        name, cost = claim.next_best
        return f"cheapest of {len(claim.instance_types)}, next {name} at {print_hourly(self._money(cost))}"

    def _unplaced_rows(self) -> Iterator[tuple[object, ...]]:
        groups: dict[tuple[Reason, ...], list[str]] = {}
        for each in self.plan.unplaced:
            groups.setdefault(each.reasons, []).append(each.pod)
        for reasons, pods in sorted(groups.items(), key=lambda each: (-len(each[1]), each[1][0])):
            first: tuple[object, object] = (len(pods), pods[0])
            for reason in reasons:
                yield *first, reason.pool or "", reason.filter, reason.message
                first = ("", "")

    def _waiting_rows(self) -> Iterator[tuple[object, ...]]:
        groups: dict[str, list[str]] = {}
        for each in self.waiting:
            groups.setdefault(each.reason, []).append(each.pod)
        for reason, pods in groups.items():
            yield len(pods), pods[0], reason

    def _distance(self, least: int) -> str:
        """How far the price can be from the cheapest possible. Rounded up: a bound promises, it does not guess."""
        plan = self.plan
        above = plan.hourly + (plan.objective or 0) - plan.planned - least
        tenths = -(-1000 * above // least)
        ignores = f" (the bound ignores {_listed(plan.bound_ignores)})" if plan.bound_ignores else ""
        return f"{print_hourly(self._money(plan.hourly))}, at most {tenths / 10:.1f} % above the cheapest possible{ignores}."

    def summary(self) -> Sequence[str]:
        """The lines below the tables."""
        plan = self.plan
        left = len(plan.unplaced)
        placed = self.pods - left
        hourly = self._money(plan.hourly)
        month = print_monthly(monthly(hourly, hours=self.hours_of_month))
        text = (
            f"{placed:,} of {_count(self.pods, 'pod')} placed: {_count(len(plan.claims), 'machine')} to buy for"
            f" {print_hourly(hourly)} ({month}), {_count(len(plan.filled), 'existing node')} used."
        )
        lines = [f"{text} Packer {plan.packer}, {self.seconds:.2f} s."]
        if plan.max_hourly > plan.hourly:
            most = self._money(plan.max_hourly)
            lines.append(
                f"At most {print_hourly(most)} ({print_monthly(monthly(most, hours=self.hours_of_month))}), if the"
                " cheapest of what the machines may be cannot be had."
            )
        if plan.claims and plan.lower_bound:
            lines.append(self._distance(plan.lower_bound))
        if self.unpriced:
            lines.append(
                f"What the existing nodes cost is not known: no price for {_count(len(self.unpriced), 'node')}."
            )
        elif self.snapshot.nodes:
            lines.append(
                f"The existing {_count(len(self.snapshot.nodes), 'node')} cost {print_hourly(self._money(self._existing()))}."
            )
        return lines if self.disruptions is None else [*lines, *self.disruptions.summary()]


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _units(nano: int | None) -> float | None:
    return None if nano is None else nano / NANO


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def _reason(reason: Reason) -> dict[str, Any]:
    return {
        "nodePool": str(reason.pool) if reason.pool is not None else None,
        "filter": str(reason.filter),
        "message": reason.message,
    }
