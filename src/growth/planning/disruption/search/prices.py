"""What may be bought instead of nodes that go: machines that cost less for certain, whichever of their types comes.

Karpenter's rules. A type counts with the dearest offering that it may be launched as, of the first terms that are for
sale: reserved, then spot, then on demand. Where both spot and on demand would do, only spot is asked for, because only
spot was compared. Spot replaces spot only behind a gate, and a single spot node only where many types are cheaper: then
the cheapest of them are listed and no more, so that what comes is not replaced again at once. What the limits of its pool
have no room for is none of them. A machine of a type that goes must be cheaper than that: otherwise one of those could
have stayed; nor may it be what was there before a node that goes. After every filter the pool's `minValues` must still hold.
"""

import dataclasses
import functools
import operator
import weakref
from collections.abc import Mapping, Sequence
from typing import Final

from growth.api import names
from growth.api.pools import PoolRef
from growth.cluster.replacing import KIND
from growth.planning.attempts import Claim
from growth.planning.disruption.model import OwnedNode, Replacement
from growth.planning.disruption.search.nodes import Nodes
from growth.planning.disruption.search.options import SearchOptions
from growth.planning.ledger import Ledger
from growth.planning.listing import Listing, bounded, dearest, lowest_price, of_types, shortened, up_to
from growth.planning.offerings import Shelf, State
from growth.planning.solve import Context, Pass

# So many types must be cheaper before one spot node replaces another, and so many are listed then.
SPOT_TO_SPOT_TYPES: Final = 15
# What a launch takes where it can, first to last.
TERMS: Final = (names.RESERVED, names.SPOT, names.ON_DEMAND)
_TOO_DEAR: Final = "Can't replace with a cheaper node"
_GIVEN_UP: Final = "What would be cheaper was given up for it a while ago, and pods do not go in a circle"
_BEYOND_LIMITS: Final = "Can't replace with a cheaper node within the limits of its NodePool"


@dataclasses.dataclass(frozen=True, slots=True)
class Refusal:
    """Why nothing can be bought instead; a sentence."""

    message: str


def replacements(
    claims: Sequence[Claim],
    gone: Sequence[OwnedNode],
    *,
    evictions: int,
    ledgers: Mapping[PoolRef, Ledger],
    planning: Pass,
    context: Context[Nodes],
    options: SearchOptions,
) -> tuple[Replacement, ...] | Refusal:
    """The machines that the claims may become, such that all of them together cost less than what goes.

    Every node that goes has a price. The dearest launch of all still pays for the evictions.
    """
    together = sum(node.price or 0 for node in gone)
    most = together - max(1, options.owed(evictions))  # strictly less
    drafts: list[_Draft] = []
    for claim in claims:
        draft = _on_terms(claim, gone, ledgers[claim.shelf.pool.ref], planning, options, coming=len(claims))
        if isinstance(draft, Refusal):
            return draft
        drafts.append(draft)
    planned = sum(draft.cheapest for draft in drafts)
    if planned > most:
        return _nothing_cheaper(drafts)
    found = []
    for claim, draft in zip(claims, drafts, strict=True):
        # What may be spent is shared as the expected prices are.
        limit = most if len(drafts) == 1 else most * draft.cheapest // max(1, planned)
        flexible = limit
        if options.planning.packer == "cost":
            flexible = min(limit, draft.cheapest * options.planning.flexibility // 100)
        cheaper = _cheaper(draft, limit, gone)
        listed = cheaper if isinstance(cheaper, Refusal) else _listed(draft, cheaper, flexible, limit)
        if isinstance(listed, Refusal):
            return listed
        replacement = _bought(
            claim,
            draft,
            listed,
            limit=limit,
            ledger=ledgers[claim.shelf.pool.ref],
            planning=planning,
            context=context,
        )
        if isinstance(replacement, Refusal):
            return replacement
        found.append(replacement)
    return tuple(found)


# By shelf and mask, for as long as somebody has the shelf: every move that could buy there asks again.
_LAUNCHES: Final[weakref.WeakKeyDictionary[Shelf, dict[int, Mapping[str, int]]]] = weakref.WeakKeyDictionary()


def worst_launch(shelf: Shelf, mask: int) -> Mapping[str, int]:
    """The types of the mask, cheapest first, each with the price of its dearest offering that it may be launched as."""
    known = _LAUNCHES.setdefault(shelf, {})
    if mask not in known:
        known[mask] = _worst_launch(shelf, mask)
    return known[mask]


def _worst_launch(shelf: Shelf, mask: int) -> Mapping[str, int]:
    terms: dict[str, dict[str, int]] = {}
    for option in shelf.chosen(mask):
        by_terms = terms.setdefault(option.type.name, {})
        kind = option.offering.capacity_type
        by_terms[kind] = max(by_terms.get(kind, 0), option.price)
    return {
        name: next((by_terms[kind] for kind in TERMS if kind in by_terms), max(by_terms.values()))
        for name, by_terms in terms.items()
    }


@dataclasses.dataclass(frozen=True, slots=True)
class _Draft:
    """A claim narrowed to the terms that it may be bought on; of so many types at least, cheaper than what goes.

    `barred`: some of them were given up for what goes.
    """

    shelf: Shelf
    state: State
    mask: int
    prices: Mapping[str, int]
    least: int
    barred: bool

    @property
    def cheapest(self) -> int:
        """What it is expected to cost, launched at its worst."""
        return min(self.prices.values())


def _on_terms(
    claim: Claim, gone: Sequence[OwnedNode], ledger: Ledger, planning: Pass, options: SearchOptions, *, coming: int
) -> _Draft | Refusal:
    """Where more machines come than nodes go that are not spot, spot takes the place of spot. The types are asked for unless at
    least two nodes go for each machine: else some node is replaced alone, and could be again and again.
    """
    shelf, state, mask = claim.shelf, claim.state, claim.mask
    if _less_wanted(claim, gone):
        return Refusal(f"NodePool {shelf.pool.ref} prefers machines of the type that would go (priority)")
    terms = shelf.values(names.CAPACITY_TYPE_LABEL, state, mask)
    spot = sum(node.capacity_type == names.SPOT for node in gone)
    spot_to_spot = names.SPOT in terms and spot > 0 and coming > len(gone) - spot
    if spot_to_spot and not options.spot_to_spot:
        return Refusal("SpotToSpotConsolidation is disabled, can't replace a spot node with a spot node")
    if spot_to_spot or (names.SPOT in terms and names.ON_DEMAND in terms and names.RESERVED not in terms):
        narrowed = shelf.step(state, planning.constraints.one(names.CAPACITY_TYPE_LABEL, names.SPOT))
        if narrowed is None or not mask & narrowed.mask:
            return Refusal(_TOO_DEAR)
        state, mask = narrowed, mask & narrowed.mask
    before = mask & _given_up(shelf, gone)
    mask &= ~before
    if not mask:
        return Refusal(_GIVEN_UP)
    if claim.hold is not None:
        mask = ledger.small_enough(shelf, mask, claim.hold)
        if not mask:
            return Refusal(_BEYOND_LIMITS)
    least = SPOT_TO_SPOT_TYPES if spot_to_spot and 2 * coming > len(gone) else 1
    return _Draft(shelf, state, mask, worst_launch(shelf, mask), least, barred=bool(before))


def _given_up(shelf: Shelf, gone: Sequence[OwnedNode]) -> int:
    """What was there before one of the nodes, and does not come back: that would be a circle."""
    found = 0
    for kind in {kind for node in gone for kind in node.given_up}:
        values = kind.split("/")
        if len(values) == len(KIND):
            options = [shelf.options_with(key, value) for key, value in zip(KIND, values, strict=True)]
            found |= functools.reduce(operator.and_, options)
    return found


def _less_wanted(claim: Claim, gone: Sequence[OwnedNode]) -> bool:
    """Whether a growth pool prefers the type of a machine that goes; a shelf of it has types of one priority."""
    pool = claim.shelf.pool
    if not pool.priorities:
        return False
    own = [pool.priorities.get(node.instance_type, 0) for node in gone if node.pool == str(pool.ref)]
    sold = [pool.priorities.get(option.type.name, 0) for option in claim.shelf.chosen(claim.mask)]
    return bool(own) and max(own) > min(sold, default=0)


def _cheaper(draft: _Draft, limit: int, gone: Sequence[OwnedNode]) -> list[str] | Refusal:
    """The types that cost less than what goes, cheapest first."""
    cheaper = [name for name, price in draft.prices.items() if price <= limit]
    if len(gone) > 1:
        prices: dict[str, int] = {}
        for node in gone:
            price = node.price or 0
            prices[node.instance_type] = min(prices.get(node.instance_type, price), price)
        same = [prices[name] for name in cheaper if name in prices]
        if same:
            cheaper = [name for name in cheaper if draft.prices[name] < min(same)]
    if not cheaper:
        return _nothing_cheaper([draft])
    if len(cheaper) < draft.least:
        return Refusal(_too_few(len(cheaper)))
    return cheaper


def _nothing_cheaper(drafts: Sequence[_Draft]) -> Refusal:
    return Refusal(_GIVEN_UP if any(draft.barred for draft in drafts) else _TOO_DEAR)


def _listed(draft: _Draft, cheaper: Sequence[str], flexible: int, limit: int) -> Listing | Refusal:
    """Of the cheaper types those that the claim lists: few and not much dearer than the cheapest, but as many as
    `minValues` and the rule of spot ask for, and none that would cost more than the limit.
    """
    shelf, state = draft.shelf, draft.state
    if shelf.pool.ref.group == names.GROWTH:
        return bounded(shelf, state, draft.mask, cheaper[:1], price=limit)
    if not shelf.pool.repriced.isdisjoint(cheaper):  # the cloud is told no bound
        cheaper = [name for name in cheaper if dearest([name], state.requirements, shelf.pool) <= limit]
        if not cheaper:
            return _nothing_cheaper([draft])
    sold = draft.mask & of_types(shelf, cheaper) & up_to(shelf, limit)
    rigid = shelf.too_rigid(state, sold)
    if rigid is not None:
        key, left, needed = rigid
        return Refusal(f"Filtering by price: minValues {needed} of {key} is not met by the {left} that are cheaper")
    first = cheaper[: draft.least]
    price = max(lowest_price(shelf, state, sold), *(draft.prices[name] for name in first))
    if draft.least == 1:
        price = max(price, flexible)
    elif shelf.too_rigid(state, sold & up_to(shelf, price) & of_types(shelf, first)) is None:
        return bounded(shelf, state, sold, first, price=price)
    sold &= up_to(shelf, price)
    return bounded(shelf, state, sold, shortened(shelf, state, sold), price=price)


def _bought(
    claim: Claim,
    draft: _Draft,
    listed: Listing,
    *,
    limit: int,
    ledger: Ledger,
    planning: Pass,
    context: Context[Nodes],
) -> Replacement | Refusal:
    shelf = draft.shelf
    if claim.hold is not None:
        hold = ledger.within(shelf, draft.state, listed.mask, claim.hold)
        if hold is None:
            return Refusal(_BEYOND_LIMITS)
        ledger.take(claim.hold, hold)
        claim.hold = ledger.listable(shelf, listed.mask, hold)
        left = [name for name in listed.types if claim.hold.mask & of_types(shelf, [name])]
        if len(left) < min(draft.least, len(listed.types)):
            return Refusal(_too_few(len(left)))
        listed = bounded(shelf, draft.state, claim.hold.mask, left, price=listed.max_price)
    narrowed = Claim(shelf, len(context.resources), mask=listed.mask)
    narrowed.state, narrowed.used, narrowed.pods, narrowed.firm = draft.state, claim.used, claim.pods, claim.firm
    planned, _ = planning.finished(narrowed, ledger, context.resources, listed=listed)
    return Replacement(planned=planned, types=planned.instance_types, max_price=min(planned.max_price, limit))


def _too_few(cheaper: int) -> str:
    return (
        f"SpotToSpotConsolidation requires {SPOT_TO_SPOT_TYPES} cheaper instance type options than the current "
        f"candidate to consolidate, got {cheaper}"
    )
