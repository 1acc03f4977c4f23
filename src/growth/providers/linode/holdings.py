"""What an account holds for this cluster, seen by one process: its machines, and what it did to them lately."""

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final

from growth.api.clouds import InvariantViolation
from growth.ports import Clock
from growth.providers.http import CallError, NotSent, Refused
from growth.providers.linode import tags, wire
from growth.providers.linode.booking import Locks
from growth.providers.linode.client import LinodeApi
from growth.providers.linode.failures import Meaning, meaning
from growth.providers.linode.listing import Listing
from growth.providers.linode.tags import Key

STANDARD: Final = "standard"
ENTERPRISE: Final = "enterprise"
# Machines that are no nodes of LKE.
INSTANCES: Final = "instances"
# What was claimed or deleted here counts whatever a list says; after so long the lists know it.
REMEMBERED_SECONDS: Final = 120.0
# A write that nobody answered may still arrive; after so long it does not.
DOUBT_SECONDS: Final = 60.0
# Instead of a claim: a machine that is on its way to be nobody's.
NOBODY: Final = "nobody"


@dataclasses.dataclass(frozen=True, slots=True)
class Home:
    """Where machines are bought: the LKE cluster that we are in, or a region. `id` 0: no LKE cluster.

    `metadata`: whether the region gives instances their user data.
    """

    id: int
    region: str
    tier: str
    metadata: bool = True

    @property
    def enterprise(self) -> bool:
        return self.tier == ENTERPRISE


class Doubled(InvariantViolation):
    """One claim has two machines: for a moment, of two processes at once, or until somebody settles it."""


class Remembered:
    """Machines that this process claimed or deleted lately, by number, and purchases of which it does not know."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._claims: dict[int, tuple[str, Key, float]] = {}
        self._ended: dict[int, tuple[str, float]] = {}
        self._doubted: dict[int, tuple[str, float]] = {}
        self._answers: dict[str, int] = {}
        self._sent: dict[str, float] = {}
        self._leaving: set[int] = set()
        self._left: set[int] = set()

    def doubted(self, number: int, claim: str) -> None:
        """Its tags were written for the claim and no answer came: for a while it is nobody else's."""
        self._doubted[number] = (claim, self._clock.monotonic() + DOUBT_SECONDS)

    def is_anothers(self, number: int, claim: str) -> bool:
        held = self._doubted.get(number)
        return held is not None and held[0] != claim and held[1] > self._clock.monotonic()

    def doubted_for(self, claim: str) -> list[int]:
        """Machines that are this claim's, or will be, or are nobody's."""
        self._forget()
        return [number for number, (held, _) in self._doubted.items() if held == claim]

    def sent(self, claim: str) -> None:
        """A machine was asked for in the claim's name and no answer came: for a while it may still come."""
        self._sent[claim] = self._clock.monotonic() + DOUBT_SECONDS

    def may_come(self, claim: str) -> bool:
        self._forget()
        return claim in self._sent

    def leaves(self, number: int) -> None:
        """Nobody claimed it, and its pods are on their way out: until it is gone it is nobody's to claim."""
        self._leaving.add(number)

    def is_leaving(self, number: int) -> bool:
        return number in self._leaving

    def claimed(self, number: int, claim: str, key: Key) -> None:
        self._claims[number] = (claim, key, self._clock.monotonic())

    def answered(self, claim: str, number: int) -> None:
        """A purchase for the claim ended with this machine: sooner or later the claim names it."""
        self._answers[claim] = number

    def answer_to(self, claim: str) -> int | None:
        return self._answers.get(claim)

    def disowned(self, number: int, claim: str) -> None:
        """It is not this claim's, whatever was thought; whose it is else stays known."""
        if self._claims.get(number, ("",))[0] == claim:
            del self._claims[number]
        if self._answers.get(claim) == number:
            del self._answers[claim]

    def unclaimed(self, number: int) -> None:
        self._claims.pop(number, None)
        self._answers = {claim: each for claim, each in self._answers.items() if each != number}

    def ended(self, number: int, claim: str = "") -> None:
        """Its deletion was accepted. It stays the claim's until it is gone."""
        self.unclaimed(number)
        self._leaving.discard(number)
        self._left.add(number)
        self._ended[number] = (claim, self._clock.monotonic())

    def gone(self, number: int) -> None:
        self.unclaimed(number)
        self._leaving.discard(number)
        self._left.discard(number)
        self._ended.pop(number, None)

    def is_ended(self, number: int) -> bool:
        held = self._ended.get(number)
        return held is not None and self._clock.monotonic() - held[1] < REMEMBERED_SECONDS

    def has_left(self, number: int) -> bool:
        """Whether its deletion was accepted, however long it takes: where no pool has it as a node it is in none."""
        return number in self._left

    def is_claimed(self, number: int) -> bool:
        self._forget()
        return number in self._claims

    def of_claim(self, claim: str) -> list[int]:
        self._forget()
        ended = [number for number, (held, _) in self._ended.items() if held == claim]
        return [*(number for number, (held, _, _) in self._claims.items() if held == claim), *ended]

    def of_key(self, key: Key) -> set[int]:
        self._forget()
        return {number for number, (_, held, _) in self._claims.items() if held == key}

    def _forget(self) -> None:
        oldest = self._clock.monotonic() - REMEMBERED_SECONDS
        for number in [number for number, (_, _, at) in self._claims.items() if at < oldest]:
            del self._claims[number]
        for number in [number for number, (_, at) in self._ended.items() if at < oldest]:
            del self._ended[number]
        now = self._clock.monotonic()
        self._doubted = {number: held for number, held in self._doubted.items() if held[1] > now}
        self._sent = {claim: until for claim, until in self._sent.items() if until > now}


class Holdings:
    """Only machines of this cluster at Linode (or of none) with the mark of this cluster's Growth are ours."""

    def __init__(self, cloud: LinodeApi, *, cluster: str, home: Home, clock: Clock) -> None:
        self._cloud = cloud
        self._cluster = cluster
        self._home = home
        self._clock = clock
        self.locks: Locks[Key] = Locks()
        self.remembered = Remembered(clock)
        self.machines: Listing[Sequence[wire.Instance]] = Listing(self._read_machines, clock=clock)

    async def _read_machines(self) -> Sequence[wire.Instance]:
        # By the value alone, as the tag may be written with either separator.
        found = await self._cloud.instances(tagged=tags.fitted(tags.CLUSTER, self._cluster))
        return [each for each in found if self.is_ours(each)]

    def is_at_home(self, instance: wire.Instance) -> bool:
        return (instance.lke_cluster_id or 0) == self._home.id

    def is_ours(self, instance: wire.Instance) -> bool:
        return self.is_at_home(instance) and tags.has(instance.tags, tags.CLUSTER, self._cluster)

    def is_going(self, instance: wire.Instance) -> bool:
        return instance.deleting or self.remembered.is_ended(instance.id)

    async def disputed(self, machines: Sequence[wire.Instance]) -> Mapping[int, str]:  # noqa: ARG002 - alone none contradicts another
        """Those of the machines, by number, that nobody collects for what is wrong around them, and why."""
        return {}

    async def instance(self, number: int) -> wire.Instance | None:
        """As it is now; None where the vendor says that it is gone."""
        try:
            return await self._cloud.instance(number)
        except Refused as error:
            if meaning(error) is Meaning.GONE:
                self.remembered.gone(number)
                return None
            raise


def doubled(name: str, numbers: Sequence[int]) -> Doubled:
    return Doubled(
        f"{len(numbers)} machines are tagged for claim {name} ({', '.join(map(str, numbers))}): take the tag"
        f" {tags.tag(tags.CLAIM, name)} off all but one"
    )


def check_single(instance: wire.Instance) -> None:
    """`InvariantViolation` for a machine of two claims."""
    held = tags.values(instance.tags, tags.CLAIM)
    if len(held) > 1:
        raise InvariantViolation(
            f"machine {instance.id} is tagged for {len(held)} claims ({', '.join(held)}): take off all but one of the tags"
            f" {tags.CLAIM}{tags.SEPARATOR}…"
        )


def is_unsure(error: CallError | asyncio.CancelledError) -> bool:
    """Whether the call may have taken effect, or still may: what was sent stays sent."""
    return error.unsure if isinstance(error, Refused) else not isinstance(error, NotSent)
