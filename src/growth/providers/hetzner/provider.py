"""`CloudProvider` on Hetzner's API: what is sold, machines that are there, their end; purchases are made by `buying`.

Everything that a caller hears is an error of `growth.api.clouds`, or one that ends the process. Only machines with our
cluster's label are shown or touched.
"""

import contextlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

from growth.api import names
from growth.api.clouds import (
    CloudError,
    CloudMachine,
    CloudUnavailable,
    CreateError,
    InvariantViolation,
    MachineNotFound,
    QuotaExceeded,
    RepairPolicy,
)
from growth.api.instance_types import Catalogue, InstanceType
from growth.api.karpenter import NodeClaim
from growth.api.kinds import Kind
from growth.api.nodeclasses import HETZNER_NODE_CLASS, HetznerNodeClass
from growth.kube.api import Api
from growth.ports import Clock, Random
from growth.providers.answering import Hold, in_our_words
from growth.providers.contract import REPAIRS
from growth.providers.hetzner import inventory, labels, offerings
from growth.providers.hetzner.account import Account, Missing
from growth.providers.hetzner.buying import Buying
from growth.providers.hetzner.classes import comparable, hash_of
from growth.providers.hetzner.client import HetznerApi
from growth.providers.hetzner.completing import DELETING_SECONDS, Completing, Deletions
from growth.providers.hetzner.failures import Meaning, meaning, told
from growth.providers.hetzner.groups import Groups
from growth.providers.hetzner.inventory import Inventory
from growth.providers.hetzner.machines import Machines
from growth.providers.hetzner.owned import owned_types
from growth.providers.hetzner.readiness import HetznerReadiness
from growth.providers.hetzner.shown import image_of, shown
from growth.providers.hetzner.wire import Server, ServerType
from growth.providers.http import Refused
from growth.providers.joining import Credentials
from growth.providers.nodeclasses import REFUSED, TOKEN_REFUSED
from growth.providers.shortages import UNAVAILABLE_SECONDS, Shortages

# How old a list may be that says that a machine is there.
LOOK_SECONDS: Final = 5.0
DRIFT_SECONDS: Final = 60.0
# The vendor's limit for the name of a machine, which is a host's.
NAME_CHARACTERS: Final = 63

CLASS_DRIFTED: Final = "NodeClassDrifted"
LOCATION_DRIFTED: Final = "LocationDrifted"
IMAGE_DRIFTED: Final = "ImageDrifted"


class HetznerProvider:
    """One per process. `api` is the cluster's, `cloud` the account's; writes of both stand behind the lease's gate."""

    name: Final = "hetzner"
    node_classes: Final[Sequence[Kind[Any]]] = (HETZNER_NODE_CLASS,)
    guards_nodes: Final = True

    def __init__(
        self,
        api: Api,
        cloud: HetznerApi,
        *,
        cluster: str,
        namespace: str,
        clock: Clock,
        random: Random,
        refused_seconds: float = UNAVAILABLE_SECONDS,
    ) -> None:
        self._cloud = cloud
        self._cluster = cluster
        self._clock = clock
        self.account = Account(cloud, clock=clock)
        self.groups = Groups(cloud, cluster=cluster, clock=clock)
        self.machines = Machines(cloud, cluster=cluster, clock=clock)
        self.credentials = Credentials(api, namespace=namespace, clock=clock, random=random)
        self.inventory = Inventory(api, cluster=cluster, namespace=namespace)
        self.readiness = HetznerReadiness(
            api, self.account, self.credentials, clock=clock, exchanges=cloud.client.exchanges
        )
        self._shortages = Shortages(clock, seconds=refused_seconds)
        self.told_types: Sequence[ServerType] = ()
        """As the account last told them; none before."""
        self._hold = Hold(clock)
        self._deletions = Deletions(clock)
        self._buying = Buying(
            cloud,
            cluster=cluster,
            account=self.account,
            groups=self.groups,
            machines=self.machines,
            credentials=self.credentials,
            readiness=self.readiness,
            shortages=self._shortages,
            deletions=self._deletions,
            completing=Completing(
                cloud,
                clock=clock,
                readiness=self.readiness,
                shortages=self._shortages,
                deletions=self._deletions,
                hold=self._hold,
            ),
            inventory=self.inventory,
            hold=self._hold,
        )

    # What is sold.

    async def catalogue(self) -> Catalogue:
        async with self._answering():
            sold = await self._sold()
            classes = await self.readiness.classes()
            booked = await self._booked(classes)
            of_classes = {
                each.metadata.name: (
                    *await self._bought_types(each, sold),
                    *offerings.owned_by_class(each, booked),
                )
                for each in classes
            }
            owned = owned_types([machine for each in classes for machine in each.spec.inventory], booked)
            return self._shortages.laid_over(
                Catalogue(sold.cloud, sold.currency, (*sold.types, *owned), sold.successors, of_classes)
            )

    async def _booked(self, classes: Iterable[HetznerNodeClass]) -> frozenset[int]:
        """Dedicated machines that claims have; nobody is asked where none are listed."""
        if not any(each.spec.inventory for each in classes):
            return frozenset()
        return frozenset(each.number for each in await self.inventory.bookings())

    async def _sold(self) -> Catalogue:
        types, pricing = await self.account.server_types(), await self.account.pricing()
        self.told_types = types
        return offerings.catalogue(types, pricing, now=self._clock.now())

    async def _bought_types(self, node_class: HetznerNodeClass, sold: Catalogue) -> Sequence[InstanceType]:
        """As machines of the class are, where its networks reach. A class that names a network in vain is not ready."""
        reached: frozenset[str] | None = None
        if node_class.spec.networks:
            with contextlib.suppress(Missing):
                reached = await self.account.reached(node_class.spec)
        return offerings.for_class(node_class, sold, await self.account.pricing(), reached=reached)

    async def _for_class(self, node_class: HetznerNodeClass) -> Catalogue:
        sold = await self._sold()
        types = await self._bought_types(node_class, sold)
        owned = offerings.owned_by_class(node_class, await self._booked((node_class,)))
        return Catalogue(sold.cloud, sold.currency, (*types, *owned), sold.successors)

    # Buying.

    async def create(self, claim: NodeClaim) -> CloudMachine:
        name = claim.metadata.name
        if len(name) > NAME_CHARACTERS:
            raise CreateError(
                f"claim {name}: its name is longer than the {NAME_CHARACTERS} characters that a machine's may have",
                reason="InvalidClaim",
                retryable=False,
            )
        async with self._answering(self._not_bought):
            with contextlib.suppress(QuotaExceeded):  # which holds back nobody but who would buy
                self._hold.check()
            node_class = await self.readiness.usable(claim.spec.node_class_ref)
            return await self._buying.buy(claim, node_class, await self._for_class(node_class))

    # Ending.

    async def delete(self, claim: NodeClaim) -> None:
        async with self._answering(self._not_deleted):
            if claim.status.provider_id.startswith(inventory.SCHEME):
                await self.inventory.give_back(claim)
                return
            try:
                server = await self._server_of(claim)
            except MachineNotFound:
                if claim.status.provider_id:
                    raise
                # A purchase whose answer was lost may have booked a dedicated machine as well.
                await self.inventory.give_back(claim)
                return
            if server.status == labels.DELETING or self._deletions.asked_lately(server.id):
                return
            try:
                await self._cloud.delete_server(server.id)
            except Refused as error:
                if error.code == "not_found":
                    raise self._gone(server.id) from None
                raise
            self._deletions.asked(server.id)

    async def _server_of(self, claim: NodeClaim) -> Server:
        """The claim's machine, looked at just now. `MachineNotFound` once it is gone."""
        name, uid, provider_id = claim.metadata.name, claim.metadata.uid, claim.status.provider_id
        if not provider_id:
            found = await self._cloud.server_named(name)
            if found is None or not self.machines.is_ours(found) or found.labels.get(labels.CLAIM_UID, "") != uid:
                raise MachineNotFound(f"claim {name} has no machine")
            return found
        server = await self._numbered(provider_id)
        held = server.labels.get(labels.CLAIM_UID, "")
        if uid and held and held != uid:
            raise InvariantViolation(f"claim {name} ({uid}) names the machine {provider_id} of another claim ({held})")
        return server

    # Looking.

    async def get(self, provider_id: str) -> CloudMachine:
        async with self._answering():
            if provider_id.startswith(inventory.SCHEME):
                return await self.inventory.get(provider_id)
            return shown(await self._numbered(provider_id), await self._sold())

    async def list(self) -> Sequence[CloudMachine]:
        async with self._answering():
            listed = await self.machines.all()
            sold = await self._sold()
            bought = [shown(server, sold) for _, server in sorted(listed.items())]
            return (*bought, *(each.machine for each in await self.inventory.bookings()))

    async def is_drifted(self, claim: NodeClaim) -> str:
        number = labels.number_of(claim.status.provider_id)
        if number is None:
            return ""
        async with self._answering():
            node_class = await self.readiness.found(claim.spec.node_class_ref)
            server = (await self.machines.all(within=DRIFT_SECONDS)).get(number)
            if node_class is None or server is None:
                return ""
            found = await self._differs(node_class, server)
            return "" if found and await self.readiness.is_refused(node_class) else found

    async def _differs(self, node_class: HetznerNodeClass, server: Server) -> str:
        """By what the server is not as the class would make it now; empty where it is."""
        spec = node_class.spec
        held = server.labels.get(labels.CLASS_HASH, "")
        if comparable(held) and held != hash_of(spec):
            return CLASS_DRIFTED
        place = server.location.name if server.location is not None else ""
        if spec.locations and place and place not in spec.locations:
            return LOCATION_DRIFTED
        return await self._image_drift(node_class, server)

    async def _image_drift(self, node_class: HetznerNodeClass, server: Server) -> str:
        """Only images that are selected by labels have newer ones."""
        asked = node_class.spec.image
        if asked is None or not asked.selector:
            return ""
        made = shown(server, await self._sold()).labels.get(names.ARCH_LABEL, "")
        if not made:
            return ""
        try:
            newest = await self.account.image(asked, made)
        except Missing:
            return ""
        return IMAGE_DRIFTED if image_of(server) not in {"", str(newest.id)} else ""

    def repair_policies(self) -> Sequence[RepairPolicy]:
        return REPAIRS

    async def _numbered(self, provider_id: str) -> Server:
        """A machine of ours by its ID. That it is gone is said by the vendor of that one machine, never by a list."""
        number = labels.number_of(provider_id)
        if number is None:
            raise InvariantViolation(
                f"{provider_id!r} is no machine of this cloud: its provider IDs begin with {labels.SCHEME}"
            )
        if self._deletions.gone_lately(number, within=LOOK_SECONDS):
            raise MachineNotFound(f"there is no machine {labels.provider_id(number)}")
        known = await self._listed(number)
        if known is not None:
            return known
        try:
            server = await self._cloud.server(number)
        except Refused as error:
            if error.code == "not_found":
                raise self._gone(number) from None
            raise
        if not self.machines.is_ours(server):
            raise InvariantViolation(
                f"the machine {provider_id} has not this cluster's label {labels.CLUSTER}={self._cluster}: it is not touched"
            )
        return server

    async def _listed(self, number: int) -> Server | None:
        """From the list of all; None where the machine itself is to be looked at.

        A list that is older than an accepted deletion says nothing of it, and a list costs more than a look at one machine.
        """
        if self._deletions.asked_just_now(number):
            return (await self.machines.all(within=LOOK_SECONDS + DELETING_SECONDS)).get(number)
        if not self._deletions.asked_lately(number):
            return (await self.machines.all(within=LOOK_SECONDS)).get(number)
        return (await self.machines.all(within=1.0)).get(number) if self._deletions.are_many else None

    def _gone(self, number: int) -> MachineNotFound:
        self._deletions.gone(number)
        return MachineNotFound(f"there is no machine {labels.provider_id(number)}")

    # Errors in our words.

    def _answering(self, words: Callable[[Refused], CloudError] | None = None) -> AbstractAsyncContextManager[None]:
        """Whoever only reads learns nothing from a refusal."""
        return in_our_words("Hetzner", words or self._unknown)

    def _unknown(self, error: Refused) -> CloudError:
        said = told(error)
        if meaning(error.code, error.message) is Meaning.FATAL:
            self.readiness.token_refused(said)
        return CloudUnavailable(f"Hetzner does not tell: {said}")

    def _not_bought(self, error: Refused) -> CloudError:
        said = told(error)
        match meaning(error.code, error.message):
            case Meaning.QUOTA:
                return self._hold.begin(
                    QuotaExceeded(f"the project may hold no more: {said}; ask Hetzner for a higher limit, or buy less")
                )
            case Meaning.FATAL:
                self.readiness.token_refused(said)
                return self._hold.begin(CreateError(said, reason=TOKEN_REFUSED))
            case Meaning.CONFIG:
                return CreateError(f"Hetzner refuses: {said}", reason=REFUSED, retryable=False)
            case _:
                return CloudUnavailable(f"Hetzner cannot do it now: {said}")

    def _not_deleted(self, error: Refused) -> CloudError:
        said = told(error)
        match meaning(error.code, error.message):
            case Meaning.FATAL:
                self.readiness.token_refused(said)
                return CloudError(said)
            case Meaning.CONFIG:
                return CloudError(f"Hetzner refuses the deletion: {said}")
            case _:
                return CloudUnavailable(f"Hetzner cannot do it now: {said}")
