"""A comparison as people and programs see it. The shape of the JSON is a contract."""

import collections
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from growth.cli.output import Section
from growth.planning.explaining.whatif import Side, WhatIf
from growth.planning.plan import PlannedClaim
from growth.units.money import HOURS_PER_MONTH, NANO, Hours, Money, monthly, print_hourly, print_monthly


@dataclasses.dataclass(frozen=True, kw_only=True)
class Report:
    """`changes` are what is different, in words; `hours_of_month` how many hours of a month the cloud bills."""

    found: WhatIf
    changes: Sequence[str]
    hours_of_month: Hours = HOURS_PER_MONTH

    def as_json(self) -> dict[str, Any]:
        found = self.found
        return {
            "changes": list(self.changes),
            "before": self._side(found.before),
            "after": self._side(found.after),
            "difference": {
                "hourly": found.difference / NANO,
                "monthly": self._month(found.difference).nano / NANO,
                "currency": found.currency,
            },
            "unfit": [
                {
                    "pod": each.pod,
                    "reasons": [
                        {
                            "nodePool": str(reason.pool) if reason.pool is not None else None,
                            "filter": str(reason.filter),
                            "message": reason.message,
                        }
                        for reason in each.reasons
                    ],
                }
                for each in found.unfit
            ],
            "lost": list(found.lost),
            "removedNodes": list(found.gone),
            "held": [{"pod": pod, "message": why} for pod, why in found.held],
        }

    def _side(self, side: Side) -> dict[str, Any]:
        made: dict[str, Any] = {
            "nodes": side.nodes,
            "hourly": side.hourly / NANO,
            "monthly": self._month(side.hourly).nano / NANO,
            "nodeClaims": [
                {
                    "nodePool": str(each.pool),
                    "instanceType": each.instance_type,
                    "zone": each.zone,
                    "capacityType": each.capacity_type,
                    "price": each.price / NANO,
                    "pods": list(each.pods),
                }
                for each in side.claims
            ],
            "unschedulable": [each.pod for each in side.unplaced],
            "unpriced": list(side.unpriced),
        }
        if side.reach is not None:
            made["reachable"] = {"hourly": side.reach.reachable / NANO, "moves": len(side.reach.moves)}
        return made

    def _money(self, nano: int) -> Money:
        return Money(nano, self.found.currency)

    def _month(self, nano: int) -> Money:
        return monthly(self._money(nano), hours=self.hours_of_month)

    # -- for people -----------------------------------------------------------------------------------------------

    def sections(self) -> Iterator[Section]:
        """(title, headings, rows) of each table that has rows."""
        before, after = self.found.before, self.found.after
        rows: list[tuple[object, ...]] = [
            ("nodes", before.nodes, after.nodes),
            ("machines to buy", len(before.claims), len(after.claims)),
            ("cost an hour", print_hourly(self._money(before.hourly)), print_hourly(self._money(after.hourly))),
            ("cost a month", print_monthly(self._month(before.hourly)), print_monthly(self._month(after.hourly))),
            ("pods without a place", len(before.unplaced), len(after.unplaced)),
        ]
        if before.reach is not None and after.reach is not None:
            rows.append(
                (
                    "reachable a month",
                    print_monthly(self._month(before.reach.reachable)),
                    print_monthly(self._month(after.reach.reachable)),
                )
            )
        yield "What if: " + ", ".join(self.changes), ("", "before", "after"), rows
        bought = list(self._bought())
        if bought:
            yield "Machines to buy", ("pool", "type", "zone", "terms", "price", "before", "after"), bought
        if self.found.unfit:
            unfit: list[tuple[object, ...]] = [
                (each.pod, each.reasons[0].pool or "", each.reasons[0].filter, each.reasons[0].message)
                if each.reasons
                else (each.pod, "", "", "")
                for each in self.found.unfit
            ]
            yield "Pods that would not fit", ("pod", "pool", "filter", "reason"), unfit
        if self.found.held:
            held: list[tuple[object, ...]] = list(self.found.held)
            yield "Pods that a drain would wait for", ("pod", "why"), held
        if self.found.lost:
            yield (
                "Pods that nobody would make again",
                ("pod",),
                [(key,) for key in self.found.lost],
            )

    def _bought(self) -> Iterator[tuple[object, ...]]:
        def counted(claims: Sequence[PlannedClaim]) -> collections.Counter[tuple[str, str, str, str, int]]:
            return collections.Counter(
                (str(each.pool), each.instance_type, each.zone, each.capacity_type, each.price) for each in claims
            )

        before, after = counted(self.found.before.claims), counted(self.found.after.claims)
        for key in sorted(before | after, key=lambda each: (-each[4], each)):
            pool, kind, zone, terms, price = key
            yield pool, kind, zone, terms, print_hourly(self._money(price)), before[key], after[key]

    def summary(self) -> Sequence[str]:
        """The lines below the tables."""
        found = self.found
        more = found.difference
        month = print_monthly(self._month(abs(more)))
        hour = print_hourly(self._money(abs(more)))
        cost = (
            "It would cost the same"
            if more == 0
            else f"It would cost {hour} ({month}) {'more' if more > 0 else 'less'}"
        )
        fits = (
            "every pod would have a place"
            if not found.after.unplaced
            else f"{len(found.after.unplaced):,} pods would have no place, {len(found.unfit):,} of them because of it"
        )
        lines = [f"{cost}, and {fits}."]
        if found.gone:
            lines.append(f"Nodes that would go: {', '.join(found.gone)}.")
        if found.after.unpriced:
            lines.append(f"No price is known for {len(found.after.unpriced)} nodes: what they cost is left out.")
        return lines
