"""A pool's offerings as bits, so that «which of them are left?» is one `&`.

Each option (a type in one place on one kind of terms) is one bit of a Python int, cheapest first: the lowest bit of a
mask is its cheapest option. A requirement becomes a mask once; «has room for x» is a bisect into precomputed masks.
"""

import bisect
import dataclasses
import functools
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence

from growth.api import names
from growth.api.instance_types import InstanceType, Offering
from growth.cluster.snapshot import PoolView
from growth.planning.requirements import NEVER, Requirement, any_value, from_labels, gather, key_of, one_of, parse
from growth.units.resources import Amounts


@dataclasses.dataclass(frozen=True, slots=True)
class Option:
    """One thing that can be bought, with every label that a machine bought so can have."""

    type: InstanceType
    offering: Offering
    price: int
    labels: Mapping[str, tuple[str, ...]]


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


class Shelf:
    """The options of one pool, or of one priority of it, compiled for one pass.

    `overheads` is what DaemonSets take of each option, by its index; `measure` takes it off and makes the tables of room.
    """

    def __init__(
        self,
        pool: PoolView,
        options: Iterable[Option],
        *,
        architecture: Constraint | None = None,
        strict_min_values: bool = True,
    ) -> None:
        self._strict = strict_min_values
        self.pool = pool
        self.architecture = architecture
        self.options = tuple(
            sorted(
                options,
                key=lambda o: (o.price, o.type.name, o.offering.zone, o.offering.capacity_type, o.offering.reservation),
            )
        )
        everything = (1 << len(self.options)) - 1
        # Labels of the cloud, also those that only options have which the pool rules out: no template sets them.
        cloud = cloud_labels(pool)
        by_value: dict[str, dict[str, int]] = {key: {} for key in cloud}
        bit = 1
        for option in self.options:
            for key, values in option.labels.items():
                masks = by_value[key]
                for value in values:
                    masks[value] = masks.get(value, 0) | bit
            bit <<= 1
        self._by_value = by_value
        self._defined = {key: functools.reduce(operator.or_, masks.values(), 0) for key, masks in by_value.items()}
        self.template = template_requirements(pool)
        self._wants_flexibility = any(requirement.min_values for requirement in self.template.values())
        self._everything = everything
        self._masks: dict[tuple[str, Requirement], int] = {}
        self._rooms: list[tuple[list[int], list[int]]] = []
        self.overheads: list[Amounts] = [{} for _ in self.options]
        self._states: dict[frozenset[tuple[str, Requirement]], State] = {}
        self.start = self._state(self.template)
        self._flexible: dict[tuple[str, Requirement, int], int] = {}

    def measure(self, resources: Sequence[str]) -> None:
        """Makes the tables of room for the resources, in their order."""
        for name in resources:
            rooms = [
                option.type.allocatable.get(name, 0) - overhead.get(name, 0)
                for option, overhead in zip(self.options, self.overheads, strict=True)
            ]
            self._rooms.append(self._thresholds(rooms))

    def _thresholds(self, rooms: list[int]) -> tuple[list[int], list[int]]:
        """Sorted amounts, and for each position the options that have at least so much."""
        order = sorted(range(len(rooms)), key=rooms.__getitem__)
        masks = [self._everything]
        for index in order:
            masks.append(masks[-1] & ~(1 << index))
        return [rooms[index] for index in order], masks

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
        return key in self._defined or key in self.template or key in names.WELL_KNOWN_LABELS

    def mask_of(self, key: str, requirement: Requirement) -> int:
        """The options whose label can satisfy the requirement.

        An option that does not define the label, while others do, satisfies it where the pool's labels set it, or where
        absence is fine: of labels that come from the cloud only the cloud knows which machine has them.
        """
        cached = self._masks.get((key, requirement))
        if cached is not None:
            return cached
        defined = self._defined.get(key, 0)
        own = key in self.pool.labels and key not in names.WELL_KNOWN_LABELS
        mask = self._everything & ~defined if own or requirement.tolerates_absence else 0
        for value, options in self._by_value.get(key, {}).items():
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
                mask &= self.mask_of(label, requirement) if label in self._defined else self._everything
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
            elif key in self._defined:
                merged[key] = asked
            elif not asked.tolerates_absence:
                return None  # no node of this pool will carry the label
        result = self._state(merged)
        return result if result.mask else None

    def values(self, key: str, state: State, mask: int) -> list[str]:
        """The values that the label can still have, sorted: what the options offer, or what the template lists."""
        requirement = state.requirements.get(key)
        by_value = self._by_value.get(key)
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
        if key in self._defined:
            return mask & ~self._defined[key]
        return 0 if key in self.template and not self.template[key].tolerates_absence else mask

    def options_with(self, key: str, value: str) -> int:
        """The options whose label can be `value`; all of them where options do not define the label."""
        by_value = self._by_value.get(key)
        return self._everything if by_value is None else by_value.get(value, 0)

    def too_rigid(self, state: State, mask: int) -> tuple[str, int, int] | None:
        """Like `rigid`, but None where `minValues` are wishes."""
        return self.rigid(state, mask) if self._strict and self._wants_flexibility else None

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
            by_value = self._by_value.get(key, {})
            known = sum(1 for value, options in by_value.items() if options & mask and requirement.allows(value))
            self._flexible[key, requirement, mask] = known
        return known

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


def cloud_labels(pool: PoolView) -> list[str]:
    """The labels that some type or offering of the pool defines."""
    types = (key for kind in pool.instance_types for key in kind.labels)
    offerings = (key for kind in pool.instance_types for offering in kind.offerings for key in offering.labels)
    own = (names.INSTANCE_TYPE_LABEL, names.ZONE_LABEL, names.CAPACITY_TYPE_LABEL)
    return [key_of(key) for key in dict.fromkeys((*own, *types, *offerings))]


def type_labels(kind: InstanceType) -> dict[str, tuple[str, ...]]:
    """The labels that every machine of the type can have, with their possible values."""
    return {**{key_of(key): values for key, values in kind.labels.items()}, names.INSTANCE_TYPE_LABEL: (kind.name,)}


def option_labels(of_type: Mapping[str, tuple[str, ...]], offering: Offering) -> dict[str, tuple[str, ...]]:
    """Every label that a machine of the offering can have: the type's, the place and the terms, and its own."""
    labels = {
        **of_type,
        names.ZONE_LABEL: (offering.zone,),
        names.CAPACITY_TYPE_LABEL: (offering.capacity_type,),
    }
    if offering.labels:
        labels.update({key_of(key): values for key, values in offering.labels.items()})
    return labels
