"""Whose a machine is: the machine of a claim, by its tags or its provider ID, and what contradicts itself."""

import dataclasses
from collections.abc import Sequence
from typing import Final

from growth.api.clouds import CloudUnavailable, CreateError, InvariantViolation, MachineNotFound
from growth.api.karpenter import NodeClaim
from growth.api.linodeclasses import LinodeNodeClass
from growth.ports import Clock
from growth.providers.linode import tags, wire
from growth.providers.linode.booking import Bound, Locks
from growth.providers.linode.holdings import Holdings, check_single, doubled
from growth.providers.linode.tags import Key

PROVISIONING: Final = "NodePoolProvisioning"


class Undelivered(CreateError):
    """LKE accepted a count and has not come up with the nodes for long: a machine of another type is asked for instead."""


class Anothers(InvariantViolation):
    """A claim names a machine that has the tags of another."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is bought for a claim. `last`: another type cannot be had instead."""

    claim: NodeClaim
    node_class: LinodeNodeClass
    key: Key
    bound: Bound
    last: bool = True

    @property
    def uid(self) -> str:
        return self.claim.metadata.uid

    @property
    def name(self) -> str:
        return self.claim.metadata.name


class Finding:
    """Raises errors of `growth.api.clouds` and `CallError`."""

    def __init__(self, held: Holdings, *, clock: Clock) -> None:
        self._held = held
        self._clock = clock
        self.claims: Locks[str] = Locks()

    async def find(self, claim: NodeClaim, *, bound: Bound) -> wire.Instance | None:  # noqa: ARG002 - for those who wait for locks
        """The claim's machine, by its tag, as it is now. `Late` where what must be waited for takes longer than the bound."""
        return await self._found(claim)

    async def check(self, claim: NodeClaim, key: Key) -> None:  # noqa: ARG002 - for those whose machines are in pools
        """`InvariantViolation` where what is there of the claim and its key contradicts itself."""
        await self._found(claim)

    async def _found(self, claim: NodeClaim, since: float | None = None) -> wire.Instance | None:
        """`InvariantViolation` for two machines, or one of another claim of that name.

        A list is enough that was begun at `since` (monotonic; now); the machine itself is looked at now.
        """
        name = claim.metadata.name
        found = [each for each in await self._tagged(claim, since) if tags.has(each.tags, tags.CLAIM, name)]
        alive = [each for each in found if not self._held.is_going(each)]
        if len(alive) > 1:
            raise doubled(name, [each.id for each in alive])
        for instance in alive:
            check_single(instance)
            if not tags.is_for(instance.tags, claim):
                raise InvariantViolation(
                    f"machine {instance.id} is tagged for claim {name}, but for another of that name"
                    f" ({tags.uid_of(instance.tags)}), not for {claim.metadata.uid}"
                )
            return instance
        if any(tags.is_for(each.tags, claim) for each in found):
            raise CreateError(f"the machine of claim {name} is still being deleted", reason=PROVISIONING)
        return None

    async def begun(self, claim: NodeClaim, types: Sequence[str]) -> str:  # noqa: ARG002 - whoever buys by name needs none
        """The one of these types with which the process before began a purchase for the claim; empty where none is known."""
        return ""

    def avoids(self, type_: str) -> bool:  # noqa: ARG002 - a vendor that refuses at once need not be waited for
        """Whether a type that was asked for did not come lately: others are tried first."""
        return False

    async def _tagged(self, claim: NodeClaim, since: float | None = None) -> list[wire.Instance]:
        """What a list shows under the claim's name, and what this process wrote for it, each as it is now."""
        listed = await self._held.machines.since(self._clock.monotonic() if since is None else since)
        numbers = {each.id for each in listed if tags.has(each.tags, tags.CLAIM, claim.metadata.name)}
        uid, remembered = claim.metadata.uid, self._held.remembered
        nameless = tags.fitted(tags.CLAIM, claim.metadata.name)
        numbers.update(remembered.of_claim(uid), remembered.doubted_for(uid), remembered.of_claim(nameless))
        found = [await self._held.instance(number) for number in sorted(numbers)]
        return [each for each in found if each is not None]

    async def of_claim(self, claim: NodeClaim) -> wire.Instance:
        name, provider_id = claim.metadata.name, claim.status.provider_id
        if not provider_id:
            found = [each for each in await self._tagged(claim) if tags.is_for(each.tags, claim)]
            if not found and self._held.remembered.doubted_for(claim.metadata.uid):
                raise CloudUnavailable(
                    f"tags of a machine of claim {name} may still be on their way: it is tried again"
                )
            if not found:
                raise MachineNotFound(f"claim {name} has no machine")
            instance = min(found, key=lambda each: (each.deleting, each.id))
            return await self.owned(instance, claim)
        number = tags.number_of(provider_id)
        if number is None:
            raise InvariantViolation(
                f"{provider_id!r} of claim {name} is no machine of this cloud, whose provider IDs begin with {tags.SCHEME}: run"
                " Growth with the --provider that bought it, or delete the machine there and then take it out of the claim's status"
            )
        named = await self._held.instance(number)
        if named is None:
            raise MachineNotFound(f"there is no machine {provider_id}")
        if not self._held.is_at_home(named):
            raise InvariantViolation(_elsewhere(named, claim))
        return await self.owned(named, claim)

    async def owned(self, instance: wire.Instance, claim: NodeClaim) -> wire.Instance:
        """The machine, where it is the claim's."""
        self.check_owner(instance, claim)
        return instance

    def check_owner(self, instance: wire.Instance, claim: NodeClaim) -> None:
        """That no other claim has it, or has it too."""
        check_single(instance)
        held, uid = tags.uid_of(instance.tags), claim.metadata.uid
        if uid and held and held != uid and not tags.has(instance.tags, tags.UID, tags.uid_value(uid)):
            raise Anothers(f"claim {claim.metadata.name} ({uid}) names machine {instance.id} of another claim ({held})")


def _elsewhere(machine: wire.Instance, claim: NodeClaim) -> str:
    """Of a claim that was bought under another setting."""
    is_, option = "an instance outside of LKE", "--linode-region"
    if machine.lke_cluster_id:
        is_, option = f"a node of LKE cluster {machine.lke_cluster_id}", "--linode-cluster"
    return (
        f"machine {machine.id} of claim {claim.metadata.name} is {is_}, where this Growth buys nothing, and is not touched: run"
        f" Growth with the {option} that it was bought with, or remove it at Linode"
    )
