"""How a claim gets its machine: the cheapest offering that can be had, once, and whole.

A machine is named by its claim and carries the claim's UID, so a purchase that is repeated finds the first machine: the
vendor gives a name once in a project. A purchase counts as made when all its actions ended well; where one did not, the
machine is removed and the next offering is tried, or the caller told.
"""

from typing import Final

from growth.api import names
from growth.api.clouds import (
    CloudMachine,
    CloudUnavailable,
    CreateError,
    InvariantViolation,
    NodeClassNotReady,
    QuotaExceeded,
)
from growth.api.instance_types import Catalogue
from growth.api.karpenter import NodeClaim
from growth.api.kinds import Json
from growth.api.nodeclasses import HETZNER_NODE_CLASS, HetznerNodeClass
from growth.providers.answering import HELD_SECONDS, Hold
from growth.providers.choice import Choice, none_left, to_be_had
from growth.providers.hetzner import failures, labels
from growth.providers.hetzner.account import Account, Missing
from growth.providers.hetzner.actions import of_making
from growth.providers.hetzner.classes import hash_of
from growth.providers.hetzner.client import HetznerApi
from growth.providers.hetzner.completing import NAME_TAKEN, Completing, Deletions
from growth.providers.hetzner.failures import Meaning, meaning, told
from growth.providers.hetzner.groups import Groups, Seat
from growth.providers.hetzner.inventory import Inventory
from growth.providers.hetzner.machines import Machines
from growth.providers.hetzner.readiness import HetznerReadiness
from growth.providers.hetzner.wire import Image, Server
from growth.providers.http import Refused
from growth.providers.joining import Credentials
from growth.providers.shortages import Shortages
from growth.providers.userdata import UserDataError
from growth.telemetry.logs import logger

_log = logger("hetzner")

# So many offerings a purchase tries; what is left is tried with the next.
MOST_OFFERINGS: Final = 8
NEXT_SECONDS: Final = 1.0
# How often a purchase looks for a seat in another placement group.
MOST_GROUPS: Final = 3


class Buying:
    """One per account. Raises errors of `growth.api.clouds`, `CallError` and `KubeError`."""

    def __init__(
        self,
        cloud: HetznerApi,
        *,
        cluster: str,
        account: Account,
        groups: Groups,
        machines: Machines,
        credentials: Credentials,
        readiness: HetznerReadiness,
        shortages: Shortages,
        deletions: Deletions,
        completing: Completing,
        inventory: Inventory,
        hold: Hold,
    ) -> None:
        self._cloud = cloud
        self._cluster = cluster
        self._account = account
        self._groups = groups
        self._machines = machines
        self._credentials = credentials
        self._readiness = readiness
        self._shortages = shortages
        self._deletions = deletions
        self._completing = completing
        self._inventory = inventory
        self._hold = hold

    async def buy(self, claim: NodeClaim, node_class: HetznerNodeClass, sold: Catalogue) -> CloudMachine:
        """`sold` is what machines of the class are."""
        name = claim.metadata.name
        if node_class.spec.inventory:
            booking = await self._inventory.of_claim(claim)
            if booking is not None:
                return booking.machine
        options = to_be_had(claim, sold, self._shortages)
        held = await self._held(claim)
        if held is not None and any(not each.type.owned for each in options):
            options = [each for each in options if each.type.owned]
            if not options:
                raise held
        tried = 0
        unfit: list[str] = []
        for option in options[:MOST_OFFERINGS]:
            tried += 1
            try:
                made = await self._had(claim, node_class, option, sold)
            except Missing as error:
                unfit.append(str(error))
                continue
            if made is not None:
                return made
        known = await self._standing(claim, node_class, sold)
        if known is not None:
            return known
        if unfit and len(unfit) == len(options):
            raise NodeClassNotReady(f"{HETZNER_NODE_CLASS.kind} {node_class.metadata.name}: {unfit[0]}")
        if tried < len(options):
            raise CreateError(
                f"the {tried} cheapest offerings of claim {name} cannot be had now: the next are tried soon",
                reason="InsufficientCapacity",
                seconds=NEXT_SECONDS,
            )
        raise none_left(claim, options)

    async def _held(self, claim: NodeClaim) -> QuotaExceeded | None:
        """The quota for which nobody buys now, unless the claim's own machine may be what fills it."""
        try:
            self._hold.check()
        except QuotaExceeded as error:
            listed = await self._machines.all(within=HELD_SECONDS)
            if not any(each.labels.get(labels.CLAIM_UID) == claim.metadata.uid for each in listed.values()):
                return error
        return None

    async def _had(
        self, claim: NodeClaim, node_class: HetznerNodeClass, option: Choice, sold: Catalogue
    ) -> CloudMachine | None:
        """A machine of the offering: bought, or of those that people own. A claim that has one already keeps it."""
        if not option.type.owned:
            return await self._try(claim, node_class, option, sold)
        known = await self._standing(claim, node_class, sold)
        if known is not None:
            return known
        booking = await self._inventory.take(claim, option, node_class)
        return None if booking is None else booking.machine

    async def _try(
        self, claim: NodeClaim, node_class: HetznerNodeClass, option: Choice, sold: Catalogue
    ) -> CloudMachine | None:
        """The machine, of this offering or as it was bought before; None where the offering cannot be had now."""
        image = await self._image(node_class, option)
        body = await self._order(claim, node_class, option, image)
        for _ in range(MOST_GROUPS):
            try:
                seat = await self._seat(claim, node_class)
            except CreateError:
                # What took the last seat may be the claim's own.
                known = await self._standing(claim, node_class, sold)
                if known is None:
                    raise
                return known
            try:
                created = await self._cloud.create_server(
                    body if seat is None else {**body, "placement_group": seat.group}
                )
            except BaseException as error:
                if seat is not None:
                    self._groups.give_back(seat)
                if not isinstance(error, Refused):
                    raise
                if seat is not None and failures.may_be_of_group(error) and await self._groups.is_lost(seat):
                    continue
                return await self._refused(claim, node_class, option, error, sold)
            if seat is not None:
                seat.server = created.server.id
            try:
                return await self._completing.completed(created.server, created.actions, node_class, sold, option)
            finally:
                if seat is not None and self._deletions.asked_lately(created.server.id):
                    self._groups.give_back(seat)  # the machine failed: others may sit there
        raise CloudUnavailable(
            f"the placement groups of {HETZNER_NODE_CLASS.kind} {node_class.metadata.name} fill up faster than a seat is"
            " found: try again"
        )

    async def _refused(
        self, claim: NodeClaim, node_class: HetznerNodeClass, option: Choice, error: Refused, sold: Catalogue
    ) -> CloudMachine | None:
        said = told(error)
        match meaning(error.code, error.message):
            case Meaning.TAKEN:
                known = await self._standing(claim, node_class, sold)
                if known is None:
                    raise CloudUnavailable(
                        f"the machine of claim {claim.metadata.name} came and went: try again"
                    ) from error
                return known
            case Meaning.QUOTA:
                # What fills the quota may be the claim's own: the vendor need not look at names first.
                known = await self._standing(claim, node_class, sold)
                if known is None:
                    raise error
                return known
            case Meaning.CAPACITY:
                _log.info("an offering cannot be had now", offering=str(option), error=said)
                self._shortages.add((option.key,))
                return None
            case Meaning.CONFIG:
                raise self._readiness.refused(node_class, said) from error
            case _:
                raise error

    async def _standing(self, claim: NodeClaim, node_class: HetznerNodeClass, sold: Catalogue) -> CloudMachine | None:
        """What an earlier purchase bought whose answer was lost; None where there is no such machine."""
        server = await self._cloud.server_named(claim.metadata.name)
        return None if server is None else await self._adopted(claim, server, node_class, sold)

    async def _adopted(
        self, claim: NodeClaim, server: Server, node_class: HetznerNodeClass, sold: Catalogue
    ) -> CloudMachine:
        """The machine that has the claim's name already, where it is the claim's."""
        name, uid = claim.metadata.name, claim.metadata.uid
        if not self._machines.is_ours(server):
            raise CreateError(
                f"the name of claim {name} is taken by a machine in the project that is not this cluster's",
                reason=NAME_TAKEN,
                retryable=False,
            )
        if server.status == labels.DELETING or self._deletions.asked_lately(server.id):
            raise CreateError(
                f"the name of claim {name} is still taken by a machine that is being deleted", reason=NAME_TAKEN
            )
        held = server.labels.get(labels.CLAIM_UID, "")
        if held != uid:
            raise InvariantViolation(
                f"the name of claim {name} ({uid}) is taken by the machine of another claim ({held})"
            )
        _log.info("found the machine that was bought before", server=name, number=server.id)
        steps = of_making(await self._cloud.actions_of(server.id))
        made = await self._completing.completed(server, steps, node_class, sold)
        if made is None:
            raise CreateError(f"the machine of claim {name} failed and was removed: another is bought")
        return made

    async def _order(self, claim: NodeClaim, node_class: HetznerNodeClass, option: Choice, image: Image) -> Json:
        spec = node_class.spec
        # A kubelet writes its own name of the zone anew at each start. The Node gets the cluster's name when it is registered.
        told = {key: value for key, value in option.labels.items() if key != names.ZONE_LABEL}
        try:
            parts = await self._account.parts(spec)
            user_data = await self._credentials.user_data(claim, spec.user_data, max_pods=spec.max_pods, more=told)
        except (Missing, UserDataError) as error:
            raise NodeClassNotReady(f"{HETZNER_NODE_CLASS.kind} {node_class.metadata.name}: {error}") from error
        return {
            "name": claim.metadata.name,
            "server_type": option.type.name,
            "location": option.offering.zone,
            "image": image.id,
            "start_after_create": True,
            "labels": labels.of_machine(
                claim, cluster=self._cluster, class_hash=hash_of(spec), image=image.id, more=spec.labels
            ),
            "public_net": {"enable_ipv4": spec.public_net.ipv4, "enable_ipv6": spec.public_net.ipv6},
            **({"ssh_keys": list(parts.ssh_keys)} if parts.ssh_keys else {}),
            **({"networks": list(parts.networks)} if parts.networks else {}),
            **({"firewalls": [{"firewall": each} for each in parts.firewalls]} if parts.firewalls else {}),
            **({"user_data": user_data} if user_data else {}),
        }

    async def _image(self, node_class: HetznerNodeClass, option: Choice) -> Image:
        """`Missing` where no image of the class fits the type: another type may do."""
        image = await self._account.image(node_class.spec.image, option.labels.get(names.ARCH_LABEL, ""))
        disk = next((each.disk for each in await self._account.server_types() if each.name == option.type.name), 0)
        if image.disk_size > disk:
            raise Missing(
                f"spec.image: image {image.name or image.id} needs a disk of {image.disk_size:g} GB, and {option.type.name} has"
                f" {disk}: use a smaller image, or larger types"
            )
        return image

    async def _seat(self, claim: NodeClaim, node_class: HetznerNodeClass) -> Seat | None:
        if node_class.spec.placement_group != "Spread":
            return None
        return await self._groups.take(claim.spec.node_class_ref.name)
