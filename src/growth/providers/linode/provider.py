"""`CloudProvider` on LKE: what is sold in the cluster's region, machines that are there, and the way to `claiming` and `ending`.

Everything that a caller hears is an error of `growth.api.clouds`, or one that ends the process. Capacity of LKE that nobody has
claimed is not shown: it is `ending`'s to collect, under the lock of its key. Instances are all shown.
"""

import contextlib
import dataclasses
import functools
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Final

from growth.api import names
from growth.api.clouds import (
    CloudError,
    CloudMachine,
    CloudUnavailable,
    CreateError,
    InvariantViolation,
    MachineNotFound,
    NodeClassNotReady,
    QuotaExceeded,
    RepairPolicy,
)
from growth.api.instance_types import Catalogue, InstanceType
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.api.kinds import Kind
from growth.api.linodeclasses import LINODE_NODE_CLASS, LinodeNodeClass
from growth.kube.api import Api
from growth.kube.whole import every
from growth.ports import Clock, Random
from growth.providers.answering import Hold, in_our_words
from growth.providers.choice import Choice, none_left, of_claim, to_be_had
from growth.providers.contract import REPAIRS
from growth.providers.http import Refused
from growth.providers.joining import Credentials
from growth.providers.learning import sized
from growth.providers.linode import kubelets, offerings, owning, tags, wire
from growth.providers.linode.booking import Bound, Late
from growth.providers.linode.claiming import CREATE_SECONDS, PASS_SECONDS, Claiming
from growth.providers.linode.classes import differs, hashes_of, learned_sizes
from growth.providers.linode.client import LinodeApi
from growth.providers.linode.collecting import Collecting
from growth.providers.linode.direct import Direct
from growth.providers.linode.ending import Ending
from growth.providers.linode.failures import Meaning, in_words, is_of_class, meaning
from growth.providers.linode.finding import PROVISIONING, Order, Undelivered
from growth.providers.linode.holdings import INSTANCES, STANDARD, Holdings, Home
from growth.providers.linode.inheriting import Inheriting
from growth.providers.linode.leaving import Leaving
from growth.providers.linode.listing import Listing
from growth.providers.linode.many import FEW, SHARE, Many
from growth.providers.linode.naming import Naming
from growth.providers.linode.pools import ORPHAN_SECONDS, Pools
from growth.providers.linode.readiness import LinodeReadiness
from growth.providers.linode.settling import Settling
from growth.providers.nodeclasses import REFUSED, TOKEN_REFUSED
from growth.providers.shortages import UNAVAILABLE_SECONDS, Shortages
from growth.providers.userdata import LINODE, UserDataError
from growth.telemetry.logs import logger

_log = logger("linode")

# How old a list may be that says that a machine is there.
LOOK_SECONDS: Final = 5.0
DRIFT_SECONDS: Final = 60.0
# What is sold is read so often.
SOLD_SECONDS: Final = 300.0

CLASS_DRIFTED: Final = "NodeClassDrifted"

NOT_FOUND: Final = 404
# What a region must be able to, that machines there get user data.
METADATA: Final = "Metadata"
ADDRESS: Final = "give --api-endpoint an address that ends with /v4beta, or leave it out to ask Linode itself"


@dataclasses.dataclass(frozen=True, slots=True)
class Parts:
    """What works once the cluster at Linode is known."""

    home: Home
    held: Holdings
    buying: Claiming | Direct
    ending: Ending | Direct


# The state of an instance that is switched off.
OFF: Final = "offline"


class LinodeProvider:
    """One per process. `api` is the cluster's, `cloud` the account's; writes of both stand behind the lease's gate.

    `lke_cluster` is the label of the cluster at Linode; exactly one must have it. Its region and tier hold for the process.
    With a `region` instead machines are instances there, and no nodes of LKE. Of machines that nobody claims `few` may go at
    once, or that `share` of all.
    """

    name: Final = "linode"
    node_classes: Final[Sequence[Kind[Any]]] = (LINODE_NODE_CLASS,)

    def __init__(
        self,
        api: Api,
        cloud: LinodeApi,
        *,
        cluster: str,
        lke_cluster: str = "",
        region: str = "",
        namespace: str,
        clock: Clock,
        random: Random,
        refused_seconds: float = UNAVAILABLE_SECONDS,
        create_seconds: float = CREATE_SECONDS,
        orphan_seconds: float = ORPHAN_SECONDS,
        few: int = FEW,
        share: float = SHARE,
    ) -> None:
        self._api = api
        self._cloud = cloud
        self._cluster = cluster
        self._lke_cluster = lke_cluster
        self._region = region
        self._random = random
        self.guards_nodes: Final = bool(region)  # LKE makes Nodes itself, and this taint would come back from its pools
        self._credentials = Credentials(api, namespace=namespace, clock=clock, random=random, vendor=LINODE)
        self._clock = clock
        self._create_seconds = create_seconds
        self._orphan_seconds = orphan_seconds
        self._many = Many(api, namespace=namespace, few=few, share=share)
        self._parts: Parts | None = None
        self._shortages = Shortages(clock, seconds=refused_seconds)
        self._hold = Hold(clock)
        self._sold: Listing[Catalogue] = Listing(self._read_catalogue, clock=clock)
        self._found: Listing[Parts] = Listing(self._find, clock=clock)
        self._types: dict[str, str] = {}  # by the claim's UID: the type that was begun with
        self.readiness = LinodeReadiness(api, cloud, self._home, credentials=self._credentials, clock=clock)

    async def parts(self) -> Parts:
        """The cluster at Linode is looked for once. Raises `CallError` and `CloudUnavailable`."""
        if self._parts is None:
            self._parts = await self._found.since(self._clock.monotonic())
        return self._parts

    async def _find(self) -> Parts:
        if self._parts is not None:
            return self._parts
        if self._region:
            home = await self._home_in_region()
            held = Holdings(self._cloud, cluster=self._cluster, home=home, clock=self._clock)
            direct = Direct(
                self._cloud,
                held,
                cluster=self._cluster,
                home=home,
                clock=self._clock,
                random=self._random,
                credentials=self._credentials,
                hold=self._hold,
            )
            return Parts(home, held, direct, direct)
        found = await self._clusters()
        if len(found) != 1:
            how_many = "no LKE cluster is" if not found else f"{len(found)} LKE clusters are"
            raise CloudUnavailable(
                f"{how_many} called {self._lke_cluster!r} in this account: name exactly one with --linode-cluster"
            )
        (one,) = found
        home, clock, ttl = self._home_of(one), self._clock, self._orphan_seconds
        leaving = Leaving(self._api)
        pools = Pools(self._cloud, leaving, cluster=self._cluster, home=home, clock=clock, ttl_seconds=ttl)
        inheriting = Inheriting(pools, clock=clock)
        naming = Naming(self._api, self._cloud, pools, cluster=self._cluster)
        claiming = Claiming(
            self._cloud,
            pools,
            naming,
            inheriting=inheriting,
            leaving=leaving,
            cluster=self._cluster,
            home=home,
            clock=clock,
            ttl_seconds=ttl,
            hold=self._hold,
        )
        settling = Settling(pools, claiming, naming, clock=clock)
        collecting = Collecting(pools, naming, settling, leaving=leaving, many=self._many, clock=clock, ttl_seconds=ttl)
        ending = Ending(pools, naming, collecting, inheriting=inheriting, home=home, clock=clock)
        self._parts = Parts(home, pools, claiming, ending)
        _log.info("found the cluster", cluster=home.id, region=home.region, tier=home.tier)
        return self._parts

    async def _home_in_region(self) -> Home:
        try:
            found = await self._cloud.region(self._region)
        except Refused as error:
            if error.status == NOT_FOUND:
                raise CloudUnavailable(
                    f"Linode has no region {self._region!r}: name one that it has with --linode-region"
                ) from error
            raise
        return Home(0, self._region, INSTANCES, metadata=METADATA in found.capabilities)

    async def _clusters(self) -> Sequence[wire.Cluster]:
        try:
            return await self._cloud.clusters(self._lke_cluster)
        except Refused as error:
            if error.status == NOT_FOUND:
                raise CloudUnavailable(
                    f"there is no list of LKE clusters at the address that is set: {ADDRESS}"
                ) from error
            raise

    def _home_of(self, one: wire.Cluster) -> Home:
        """Tiers are not shown to accounts that have only standard clusters, but v4 shows them to nobody."""
        if not one.tier and not self._cloud.is_beta:
            raise CloudUnavailable(f"the address that is set does not tell the LKE cluster's tier: {ADDRESS}")
        return Home(one.id, one.region, one.tier or STANDARD)

    def hashes_of(self, node_class: LinodeNodeClass) -> Sequence[str]:
        """Of machines that are as the class makes them here."""
        return hashes_of(node_class.spec, instances=bool(self._region))

    async def _home(self) -> Home:
        return (await self.parts()).home

    # What is sold.

    async def catalogue(self) -> Catalogue:
        async with self._answering():
            sold = await self._catalogue()
            of_classes = {each.metadata.name: self._types_of(each, sold) for each in await self.readiness.classes()}
            return self._shortages.laid_over(dataclasses.replace(sold, of_classes=of_classes))

    def _types_of(self, node_class: LinodeNodeClass, sold: Catalogue) -> tuple[InstanceType, ...]:
        """As large as the class' nodes said, and until one has, as the class says."""
        told = kubelets.fitted(sold.types, node_class.spec.kubelet)
        return sized(told, learned_sizes(node_class, instances=bool(self._region)))

    async def _catalogue(self) -> Catalogue:
        return await self._sold.since(self._clock.monotonic() - SOLD_SECONDS)

    async def _read_catalogue(self) -> Catalogue:
        region = (await self._home()).region
        told = await self._cloud.availability(region)
        available = {each.plan: each.available for each in told}
        return offerings.catalogue(await self._cloud.types(), region=region, available=available)

    # Buying.

    async def create(self, claim: NodeClaim) -> CloudMachine:
        async with self._answering(self._not_bought, unanswered=self._provisioning):
            node_class = await self.readiness.usable(claim.spec.node_class_ref)
            buying, all_ = (await self.parts()).buying, await self._catalogue()
            sold = dataclasses.replace(all_, types=self._types_of(node_class, all_))
            bound = Bound(self._clock, seconds=self._create_seconds)
            try:
                async with buying.claims.held(claim.metadata.uid, within=bound.left()):
                    found = await buying.find(claim, bound=bound)
                    if found is None:
                        found = await self._buy(claim, node_class, sold, buying, bound)
                    self._types.pop(claim.metadata.uid, None)
                    return self._shown(found, sold, {found.id: claim.metadata.name})
            except Late:
                raise self._provisioning(self._in_vain(claim)) from None
            except InvariantViolation as error:
                type_ = self._types.get(claim.metadata.uid, "")
                error.is_over = functools.partial(self._is_over, buying, claim, tags.key_of(claim, type_))
                raise

    async def _is_over(self, buying: Claiming | Direct, claim: NodeClaim, key: tags.Key) -> bool:
        """Whether nothing contradicts itself any more about the claim, or the pools and machines of the key. Changes nothing."""
        async with self._answering():
            try:
                await buying.check(claim, key)
            except InvariantViolation:
                return False
            except CreateError:
                pass  # its machine is on its way out: a try says the rest
            return True

    def _in_vain(self, claim: NodeClaim) -> str:
        return f"no machine for claim {claim.metadata.name} after {self._create_seconds:.0f} s: it is tried again"

    async def _buy(
        self,
        claim: NodeClaim,
        node_class: LinodeNodeClass,
        sold: Catalogue,
        buying: Claiming | Direct,
        bound: Bound,
    ) -> wire.Instance:
        options = await self._options(claim, sold, buying)
        full: Refused | Undelivered | None = None
        for option in options:
            if option is not options[0] and not bound.left(but=PASS_SECONDS):
                raise self._provisioning(self._in_vain(claim))
            self._types[claim.metadata.uid] = option.type.name
            key, last = tags.key_of(claim, option.type.name), option is options[-1]
            try:
                return await buying.buy(Order(claim=claim, node_class=node_class, key=key, bound=bound, last=last))
            except UserDataError as error:
                # Where the class' own check finds nothing it is too long with a claim's labels, and so with the next one's.
                if not await self.readiness.problems(node_class):
                    self.readiness.complain(node_class, str(error))
                raise NodeClassNotReady(f"{LINODE_NODE_CLASS.kind} {node_class.metadata.name}: {error}") from error
            except Undelivered as error:
                _log.info("LKE does not come up with a node", offering=str(option), NodeClaim=claim.metadata.name)
                full = error  # of another type one may come
                self._types.pop(claim.metadata.uid, None)
            except Refused as error:
                match await self._blamed(error, option):
                    case Meaning.CAPACITY:
                        _log.info("an offering cannot be had now", offering=str(option), error=in_words(error))
                        self._shortages.add((option.key,))
                        self._types.pop(claim.metadata.uid, None)
                    case Meaning.FULL:
                        full = error  # of another type there is another pool
                        self._types.pop(claim.metadata.uid, None)
                    case Meaning.CONFIG:
                        if is_of_class(error):
                            said = f"Linode refuses machines of this class: {in_words(error)}"
                            self.readiness.complain(node_class, said)
                        raise
                    case _:
                        raise
        raise full or none_left(claim, options)

    async def _blamed(self, error: Refused, option: Choice) -> Meaning:
        """Words that nobody knows are about the type where the region's list, read again, lacks it; else about the request."""
        found = meaning(error)
        if found is not Meaning.CONFIG:
            return found
        told = await self._cloud.availability(option.offering.zone)
        lacks = any(each.plan == option.type.name and not each.available for each in told)
        _log.warning("a purchase was refused in words that nobody knows", offering=str(option), error=in_words(error))
        return Meaning.CAPACITY if lacks else Meaning.CONFIG

    async def _options(self, claim: NodeClaim, sold: Catalogue, buying: Claiming | Direct) -> Sequence[Choice]:
        """Cheapest first, but types of which no node came lately last; what a purchase began with comes before all, so that a
        retry waits for the same node.

        Also where others were refused that type, or it is sold out by now: the node may be on its way. What the process before
        began with is told by what it left.
        """
        allowed, now = of_claim(claim, sold), to_be_had(claim, sold, self._shortages)
        begun = self._types.get(claim.metadata.uid) or await buying.begun(claim, [each.type.name for each in allowed])
        return [
            *(each for each in allowed if each.type.name == begun),
            *sorted((each for each in now if each.type.name != begun), key=lambda each: buying.avoids(each.type.name)),
        ]

    # Ending.

    async def delete(self, claim: NodeClaim) -> None:
        async with self._answering(self._not_deleted):
            await (await self.parts()).ending.delete(claim)

    async def collect(self) -> int:
        """Capacity that nobody has claimed for too long goes. A pass that would take many takes none: see `held_back`."""
        async with self._answering(self._not_deleted):
            return await (await self.parts()).ending.collect()

    @property
    def held_back(self) -> int:
        """Machines that nobody claims and that wait for people to confirm their end."""
        return self._many.held

    # Looking.

    async def get(self, provider_id: str) -> CloudMachine:
        number = tags.number_of(provider_id)
        if number is None:
            raise InvariantViolation(
                f"{provider_id!r} is no machine of this cloud: its provider IDs begin with {tags.SCHEME}"
            )
        async with self._answering():
            held = (await self.parts()).held
            listed = await held.machines.since(self._clock.monotonic() - LOOK_SECONDS)
            instance = next((each for each in listed if each.id == number), None) or await held.instance(number)
            if instance is None:
                raise MachineNotFound(f"there is no machine {provider_id}")
            if not held.is_ours(instance):
                raise InvariantViolation(
                    f"machine {provider_id} has not this cluster's tag {tags.tag(tags.CLUSTER, self._cluster)}: it is not"
                    " touched"
                )
            return self._shown(instance, await self._catalogue(), await self._names((instance,)))

    async def list(self) -> Sequence[CloudMachine]:
        async with self._answering():
            held = (await self.parts()).held
            listed = await held.machines.since(self._clock.monotonic())
            # Of LKE's the others are capacity that nobody claimed. An instance was bought for a claim, also where its tag is gone.
            bought = [each for each in listed if self._region or tags.values(each.tags, tags.CLAIM)]
            named, sold, disputed = await self._names(bought), await self._catalogue(), await held.disputed(bought)
            shown = [self._shown(each, sold, named) for each in sorted(bought, key=lambda each: each.id)]
            return [
                dataclasses.replace(each, disputed=disputed.get(tags.number_of(each.provider_id) or 0, ""))
                for each in shown
            ]

    async def _names(self, instances: Sequence[wire.Instance]) -> Mapping[int, str]:
        """Names of claims that no tag holds whole, or at all, by the machine's number."""
        room = tags.LONGEST - len(tags.CLAIM) - len(tags.SEPARATOR)
        told = {each.id: tags.values(each.tags, tags.CLAIM) for each in instances}
        cut = [each.id for each in instances if len(told[each.id]) == 1 and len(told[each.id][0]) == room]
        lost = [each for each in instances if self._region and not told[each.id]]
        if not cut and not lost:
            return {}
        claims = await every(self._api, NODE_CLAIM)
        full = {tags.fitted(tags.CLAIM, each.metadata.name): each.metadata.name for each in claims}
        return {
            **{number: full.get(told[number][0], told[number][0]) for number in cut},
            **{each.id: owning.name_of(each, claims) for each in lost},
        }

    def _shown(self, instance: wire.Instance, sold: Catalogue, named: Mapping[int, str]) -> CloudMachine:
        kind = next((each for each in sold.types if each.name == instance.type), None)
        known = {key: values[0] for key, values in kind.labels.items() if len(values) == 1} if kind is not None else {}
        held = tags.values(instance.tags, tags.CLAIM)
        claim = named.get(instance.id, held[0] if len(held) == 1 else "")  # of two nobody can say whose it is
        ended = self._parts is not None and self._parts.held.remembered.is_ended(instance.id)
        return CloudMachine(
            provider_id=tags.provider_id(instance.id),
            claim=claim,
            claim_uid=tags.uid_of(instance.tags) if claim else "",
            instance_type=instance.type,
            zone=instance.region,
            capacity_type=names.ON_DEMAND,
            image_id=instance.image or "",
            labels={
                **known,
                names.ZONE_LABEL: instance.region,
                names.REGION_LABEL: instance.region,
                names.INSTANCE_TYPE_LABEL: instance.type,
                names.CAPACITY_TYPE_LABEL: names.ON_DEMAND,
            },
            capacity=kind.capacity if kind is not None else {},
            allocatable=kind.allocatable if kind is not None else {},
            created=instance.made,
            deleting=instance.deleting or ended,
            stopped=bool(self._region) and instance.status == OFF,
        )

    async def is_drifted(self, claim: NodeClaim) -> str:
        number = tags.number_of(claim.status.provider_id)
        if number is None:
            return ""
        async with self._answering():
            node_class = await self.readiness.found(claim.spec.node_class_ref)
            listed = await (await self.parts()).held.machines.since(self._clock.monotonic() - DRIFT_SECONDS)
            instance = next((each for each in listed if each.id == number), None)
            if node_class is None or instance is None:
                return ""
            was = tags.value(instance.tags, tags.CLASS_HASH)
            if not differs(was, self.hashes_of(node_class)) or await self.readiness.is_refused(node_class):
                return ""
            return CLASS_DRIFTED

    def repair_policies(self) -> Sequence[RepairPolicy]:
        return REPAIRS

    # Errors in our words.

    @contextlib.asynccontextmanager
    async def _answering(
        self,
        words: Callable[[Refused], CloudError] | None = None,
        *,
        unanswered: Callable[[str], CloudError] = CloudUnavailable,
    ) -> AsyncIterator[None]:
        """Whoever only reads learns nothing from a refusal."""
        async with in_our_words("Linode", words or self._unknown, unanswered=unanswered):
            yield

    def _provisioning(self, message: str) -> CloudError:
        return CreateError(message, reason=PROVISIONING)

    def _unknown(self, error: Refused) -> CloudError:
        said = in_words(error)
        if meaning(error) is Meaning.FATAL:
            self.readiness.token_refused(said)
        return CloudUnavailable(f"Linode does not tell: {said}")

    def _not_bought(self, error: Refused) -> CloudError:
        said = in_words(error)
        match meaning(error):
            case Meaning.QUOTA:
                return self._hold.begin(
                    QuotaExceeded(f"the account may hold no more: {said}; ask Linode for a higher limit, or buy less")
                )
            case Meaning.FULL:
                return QuotaExceeded(
                    f"the LKE pool takes no more nodes: {said}; make another pool of the cluster, or allow larger types"
                )
            case Meaning.FATAL:
                self.readiness.token_refused(said)
                return self._hold.begin(CreateError(said, reason=TOKEN_REFUSED))
            case Meaning.CONFIG:
                return CreateError(f"Linode refuses: {said}", reason=REFUSED, retryable=False)
            case _:
                return self._provisioning(f"Linode cannot do it now: {said}")

    def _not_deleted(self, error: Refused) -> CloudError:
        said = in_words(error)
        match meaning(error):
            case Meaning.FATAL:
                self.readiness.token_refused(said)
                return CloudError(said)
            case Meaning.CONFIG:
                return CloudError(f"Linode refuses the deletion: {said}")
            case _:
                return CloudUnavailable(f"Linode cannot do it now: {said}")
