"""A pool's offerings as bits, so that «which of them are left?» is one `&`.

Each option (a type in one place on one kind of terms) is one bit of a Python int, cheapest first: the lowest bit of a
mask is its cheapest option. A requirement becomes a mask once; «has room for x» is a bisect into precomputed masks.
"""

import bisect
import functools
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Final

import msgspec

from growth.api import names
from growth.api.instance_types import InstanceType, Offering, todays_names
from growth.cluster.snapshot import PoolView
from growth.planning.requirements import NEVER, Requirement, any_value, from_labels, gather, one_of, parse
from growth.units.resources import Amounts, add

# The labels that every offering has.
OF_OFFERINGS: Final = frozenset({names.ZONE_LABEL, names.CAPACITY_TYPE_LABEL})


class Option(msgspec.Struct, frozen=True, gc=False):  # thousands a pass: a struct is made eight times quicker
    """One thing that can be bought."""

    type: InstanceType
    offering: Offering
    price: int

    @property
    def labels(self) -> dict[str, tuple[str, ...]]:
        """Every label that a machine bought so can have, with its possible values."""
        return option_labels(self.type, self.offering)

    def values(self, key: str) -> tuple[str, ...]:
        """The possible values of one of the labels; none where machines do not have it."""
        if self.offering.labels:
            return self.labels.get(key, ())
        if key == names.ZONE_LABEL:
            return (self.offering.zone,)
        if key == names.CAPACITY_TYPE_LABEL:
            return (self.offering.capacity_type,)
        return self.type.labels_of_today.get(key, ())


def cheapest_first(option: Option) -> tuple[int, str, bool, str, str, str]:
    """The order of options: by price, and among equals by name, place and terms."""
    offering = option.offering
    return option.price, option.type.name, offering.spare, offering.zone, offering.capacity_type, offering.reservation


class Constraint:
    """A set of requirements, interned for one pass: equal ones are one object, so that they key tables cheaply."""

    __slots__ = ("requirements",)

    def __init__(self, requirements: Mapping[str, Requirement]) -> None:
        self.requirements = requirements


class Constraints:
    """The interning table of one pass."""

    def __init__(self) -> None:
        self._known: dict[frozenset[tuple[str, Requirement]], Constraint] = {}
        self._single: dict[tuple[str, str], Constraint] = {}
        self.none = self.of({})

    def of(self, requirements: Mapping[str, Requirement]) -> Constraint:
        key = frozenset(requirements.items())
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = Constraint(requirements)
        return known

    def one(self, key: str, value: str) -> Constraint:
        known = self._single.get((key, value))
        if known is None:
            known = self._single[key, value] = self.of({key: one_of(value)})
        return known


class State:
    """What a planned machine has been narrowed to: requirements and the options that satisfy them.

    States are interned by their shelf; `then` remembers where a constraint leads (None: nowhere).
    """

    __slots__ = ("mask", "requirements", "then")

    def __init__(self, requirements: Mapping[str, Requirement], mask: int) -> None:
        self.requirements = requirements
        self.mask = mask
        self.then: dict[Constraint, State | None] = {}


class Assortment:
    """Options of a pool, cheapest first, and which of them can have which labels: the same for every pass that sells them.

    `kinds` are all types that the pool knows, whether or not they are for sale.
    """

    def __init__(self, kinds: Sequence[InstanceType], options: Iterable[Option]) -> None:
        self._kinds = kinds
        self.options = tuple(sorted(options, key=cheapest_first))
        self.types = self._by_type()
        # Made when a label is first asked about: of a dozen a pass reads four or five.
        self._values: dict[str, dict[str, int] | None] = {}
        self._defined: dict[str, int] = {}

    def of(self, types: Set[str]) -> "Assortment":
        """The options of these types, by name."""
        return Assortment(self._kinds, (option for option in self.options if option.type.name in types))

    def _by_type(self) -> list[tuple[InstanceType, int]]:
        """Each type once, with its options: what is true of a type is asked of it once."""
        masks: dict[int, int] = {}
        types: dict[int, InstanceType] = {}
        bit = 1
        for option in self.options:
            kind = option.type
            of = id(kind)
            if of in masks:
                masks[of] |= bit
            else:
                masks[of], types[of] = bit, kind
            bit <<= 1
        return [(kind, masks[of]) for of, kind in types.items()]

    def by_value(self, key: str) -> dict[str, int] | None:
        """For each value of a label of the cloud the options that can have it; None for other labels.

        A label is the cloud's also where only options define it that the pool rules out: no template sets it.
        """
        try:
            return self._values[key]
        except KeyError:
            found = self._read(key) if self._of_cloud(key) else None
            if found is not None:
                self._defined[key] = functools.reduce(operator.or_, found.values(), 0)
            self._values[key] = found
            return found

    def defined(self, key: str) -> int:
        """The options that define the label."""
        return self._defined.get(key, 0)

    def _of_cloud(self, key: str) -> bool:
        """Whether some type or offering of the pool defines the label."""
        return key in OF_OFFERINGS or any(
            key in kind.labels_of_today or key in kind.labels_of_offerings for kind in self._kinds
        )

    def _read(self, key: str) -> dict[str, int]:
        masks: dict[str, int] = {}
        if key in OF_OFFERINGS or any(key in kind.labels_of_offerings for kind, _ in self.types):
            bit = 1
            for option in self.options:
                for value in option.values(key):
                    masks[value] = masks.get(value, 0) | bit
                bit <<= 1
            return masks
        for kind, options in self.types:
            for value in kind.labels_of_today.get(key, ()):
                masks[value] = masks.get(value, 0) | options
        return masks


class Shelf:
    """The options of one pool, or of one priority of it, compiled for one pass.

    `reserve` books what DaemonSets take of options; `measure` takes it off and makes the tables of room. `strict`: the pool
    asks for `minValues`, and they must hold.
    """

    def __init__(
        self,
        pool: PoolView,
        sold: Assortment,
        *,
        architecture: Constraint | None = None,
        strict_min_values: bool = True,
    ) -> None:
        self.pool = pool
        self.architecture = architecture
        self._sold = sold
        self.options = sold.options
        self.template = template_requirements(pool)
        self.strict = strict_min_values and any(requirement.min_values for requirement in self.template.values())
        self._everything = (1 << len(self.options)) - 1
        self._masks: dict[tuple[str, Requirement], int] = {}
        self._rooms: list[tuple[list[int], list[int]]] = []
        self._overheads: list[tuple[Amounts, int]] = [({}, self._everything)]  # each with the options that have it
        self._states: dict[frozenset[tuple[str, Requirement]], State] = {}
        self.start = self._state(self.template)
        self._flexible: dict[tuple[str, Requirement, int], int] = {}

    def reserve(self, mask: int, amounts: Amounts) -> None:
        """Adds what a DaemonSet takes of each option of the mask to its overhead."""
        parts = [
            part
            for held, options in self._overheads
            for part in ((held, options & ~mask), (add(held, amounts), options & mask))
        ]
        self._overheads = [(held, options) for held, options in parts if options]

    def overhead(self, index: int) -> Amounts:
        """What DaemonSets take of the option."""
        return next(held for held, options in self._overheads if options >> index & 1)

    def least_overhead(self, mask: int) -> Amounts:
        """Of each resource what DaemonSets take of every option of the mask."""
        parts = [held for held, options in self._overheads if options & mask]
        least = {name: min(held.get(name, 0) for held in parts) for name in parts[0]}
        return {name: amount for name, amount in least.items() if amount}

    def measure(self, resources: Sequence[str]) -> None:
        """Makes the tables of room for the resources, in their order."""
        alike = [
            (kind.allocatable, held, mask & options)
            for kind, mask in self._sold.types
            for held, options in self._overheads
            if mask & options
        ]
        for name in resources:
            rooms: dict[int, int] = {}
            for allocatable, held, mask in alike:
                room = allocatable.get(name, 0) - held.get(name, 0)
                rooms[room] = rooms.get(room, 0) | mask
            self._rooms.append(self._thresholds(rooms))

    def _thresholds(self, rooms: Mapping[int, int]) -> tuple[list[int], list[int]]:
        """The different amounts, sorted, and for each the options that have at least so much; at the end none."""
        amounts = sorted(rooms)
        masks = []
        left = self._everything
        for amount in amounts:
            masks.append(left)
            left ^= rooms[amount]
        return amounts, [*masks, left]

    def with_room(self, resource: int, amount: int) -> int:
        """The options with at least the amount of the resource (by its index)."""
        amounts, masks = self._rooms[resource]
        return masks[bisect.bisect_left(amounts, amount)]

    def amounts(self, resource: int) -> list[int]:
        """How much of the resource (by its index) options have, sorted."""
        return self._rooms[resource][0]

    def implied(self, constraint: Constraint) -> Constraint | None:
        """What the shelf adds to pods that do not say it themselves: the architecture, where it sells several."""
        if self.architecture is None or names.ARCH_LABEL in constraint.requirements:
            return None
        return self.architecture

    def known(self, key: str) -> bool:
        """Whether nodes of this pool can have the label at all."""
        return self._sold.by_value(key) is not None or key in self.template or key in names.WELL_KNOWN_LABELS

    def mask_of(self, key: str, requirement: Requirement) -> int:
        """The options whose label can satisfy the requirement.

        An option that does not define the label, while others do, satisfies it where the pool's labels set it, or where
        absence is fine: of labels that come from the cloud only the cloud knows which machine has them.
        """
        cached = self._masks.get((key, requirement))
        if cached is not None:
            return cached
        by_value = self._sold.by_value(key) or {}
        defined = self._sold.defined(key)
        own = key in self.pool.labels and key not in names.WELL_KNOWN_LABELS
        mask = self._everything & ~defined if own or requirement.tolerates_absence else 0
        for value, options in by_value.items():
            if requirement.allows(value):
                mask |= options
        self._masks[key, requirement] = mask
        return mask

    def _state(self, requirements: Mapping[str, Requirement]) -> State:
        key = frozenset(requirements.items())
        state = self._states.get(key)
        if state is None:
            mask = self._everything
            for label, requirement in requirements.items():
                if self._sold.by_value(label) is not None:
                    mask &= self.mask_of(label, requirement)
            state = self._states[key] = State(requirements, mask)
        return state

    def step(self, state: State, constraint: Constraint) -> State | None:
        """The state after taking on the constraint; None when it cannot be met here."""
        try:
            return state.then[constraint]
        except KeyError:
            result = state.then[constraint] = self._step(state, constraint)
            return result

    def _step(self, state: State, constraint: Constraint) -> State | None:
        merged = dict(state.requirements)
        for key, asked in constraint.requirements.items():
            held = merged.get(key)
            if held is not None:
                merged[key] = held.intersect(asked)
                if merged[key] == NEVER:
                    return None
            elif self._sold.by_value(key) is not None:
                merged[key] = asked
            elif not asked.tolerates_absence:
                return None  # no node of this pool will carry the label
        result = self._state(merged)
        return result if result.mask else None

    def values(self, key: str, state: State, mask: int) -> list[str]:
        """The values that the label can still have, sorted: what the options offer, or what the template lists."""
        requirement = state.requirements.get(key)
        by_value = self._sold.by_value(key)
        if by_value is not None:
            return sorted(
                value
                for value, options in by_value.items()
                if options & mask and (requirement is None or requirement.allows(value))
            )
        if requirement is None or requirement.tolerates_absence:
            return []
        return [any_value(requirement)] if requirement.complement else sorted(requirement.values)

    def without(self, key: str, mask: int) -> int:
        """The options of the mask whose machines will not carry the label at all."""
        if key in self.pool.labels:
            return 0
        if self._sold.by_value(key) is not None:
            return mask & ~self._sold.defined(key)
        return 0 if key in self.template and not self.template[key].tolerates_absence else mask

    def options_with(self, key: str, value: str) -> int:
        """The options whose label can be `value`; all of them where options do not define the label."""
        by_value = self._sold.by_value(key)
        return self._everything if by_value is None else by_value.get(value, 0)

    def too_rigid(self, state: State, mask: int) -> tuple[str, int, int] | None:
        """Like `rigid`, but None where `minValues` are wishes."""
        return self.rigid(state, mask) if self.strict else None

    def rigid(self, state: State, mask: int) -> tuple[str, int, int] | None:
        """A requirement whose `minValues` the options no longer meet: (label, values left, values needed)."""
        for key, requirement in state.requirements.items():
            if requirement.min_values:
                left = self._flexibility(key, requirement, mask)
                if left < requirement.min_values:
                    return key, left, requirement.min_values
        return None

    def _flexibility(self, key: str, requirement: Requirement, mask: int) -> int:
        """How many different values the label still has among the options; remembered, because masks recur."""
        known = self._flexible.get((key, requirement, mask))
        if known is None:
            by_value = self._sold.by_value(key) or {}
            known = sum(1 for value, options in by_value.items() if options & mask and requirement.allows(value))
            self._flexible[key, requirement, mask] = known
        return known

    def last_needed(self, state: State, mask: int) -> int:
        """The index up to which the options of the mask must be had for `minValues` of every key; the last where all of them
        are too few.
        """
        found = (mask & -mask).bit_length() - 1
        for key, requirement in state.requirements.items():
            if requirement.min_values:
                by_value = self._sold.by_value(key) or {}
                having = (options & mask for value, options in by_value.items() if requirement.allows(value))
                first = sorted((options & -options).bit_length() - 1 for options in having if options)
                if len(first) < requirement.min_values:
                    return mask.bit_length() - 1
                found = max(found, first[requirement.min_values - 1])
        return found

    def cheapest(self, mask: int) -> Option:
        """The cheapest option of a mask that is not empty."""
        return self.options[(mask & -mask).bit_length() - 1]

    def indices(self, mask: int) -> Iterator[int]:
        """The indices of the options of a mask, cheapest first."""
        while mask:
            low = mask & -mask
            yield low.bit_length() - 1
            mask ^= low

    def chosen(self, mask: int) -> list[Option]:
        """The options of a mask, cheapest first."""
        return [self.options[index] for index in self.indices(mask)]


def template_requirements(pool: PoolView) -> dict[str, Requirement]:
    """What every node of the pool satisfies: the pool's requirements and labels, and its name."""
    own = names.NODE_POOL_LABEL if pool.ref.group == names.KARPENTER else names.POOL_LABEL
    listed = ((each.key, parse(each, min_values=each.min_values or 0)) for each in pool.requirements)
    labels = from_labels({**pool.labels, own: pool.ref.name})
    return gather([*listed, *labels.items()])


def option_labels(kind: InstanceType, offering: Offering) -> dict[str, tuple[str, ...]]:
    """Every label that a machine of the offering can have: the type's, the place and the terms, and its own."""
    return {
        **kind.labels_of_today,
        names.ZONE_LABEL: (offering.zone,),
        names.CAPACITY_TYPE_LABEL: (offering.capacity_type,),
        **todays_names(offering.labels),
    }
