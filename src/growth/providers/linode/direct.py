"""Machines that are no nodes of LKE: bought under a label of the claim's name, with user data by which they join, and deleted by themselves.

A label exists once in an account, so a purchase that is repeated finds the first machine. One that nobody answered may still
arrive: until it cannot any more, its claim is not said to have no machine.
"""

import asyncio
import base64
from typing import Any, Final

from growth.api.clouds import CloudUnavailable, CreateError, InvariantViolation, MachineNotFound
from growth.api.karpenter import NodeClaim
from growth.ports import Clock, Random
from growth.providers.answering import Hold
from growth.providers.http import CallError, Refused
from growth.providers.joining import Credentials
from growth.providers.linode import tags, wire
from growth.providers.linode.classes import DEFAULT_IMAGE, hash_of
from growth.providers.linode.client import LinodeApi
from growth.providers.linode.failures import Meaning, meaning
from growth.providers.linode.finding import PROVISIONING, Finding, Order
from growth.providers.linode.holdings import Holdings, Home, check_single, is_unsure
from growth.providers.linode.owning import LONGEST, is_by_name, is_by_uid, label_of, missing
from growth.telemetry.logs import logger

_log = logger("linode")

# MiB. The vendor's own default is a swap disk of 512, with which no kubelet starts that was not told to bear it.
NO_SWAP: Final = 0
NAME_TAKEN: Final = "NameTaken"


class Direct(Finding):
    """One per process. Raises errors of `growth.api.clouds` and `CallError`, and a purchase `UserDataError`."""

    def __init__(
        self,
        cloud: LinodeApi,
        held: Holdings,
        *,
        cluster: str,
        home: Home,
        clock: Clock,
        random: Random,
        credentials: Credentials,
        hold: Hold,
    ) -> None:
        super().__init__(held, clock=clock)
        self._cloud = cloud
        self._cluster = cluster
        self._tag = tags.tag(tags.CLUSTER, cluster)
        self._home = home
        self._random = random
        self._credentials = credentials
        self._hold = hold

    async def buy(self, order: Order) -> wire.Instance:
        self._hold.check()
        if len(order.name) > LONGEST:
            raise CreateError(
                f"claim {order.name}: its name has {len(order.name)} characters, and a Node takes at most {LONGEST} of it as its"
                " host name: give it a shorter one",
                reason="InvalidClaim",
                retryable=False,
            )
        body = await self._body(order)
        try:
            bought = await self._cloud.create_instance(body)
        except (CallError, asyncio.CancelledError) as error:
            if is_unsure(error):
                self._held.remembered.sent(order.uid)
            if not _is_taken(error):
                raise
            bought = await self._adopted(order)
        self._held.remembered.claimed(bought.id, order.uid, order.key)
        return bought

    async def _body(self, order: Order) -> dict[str, Any]:
        claim, spec = order.claim, order.node_class.spec
        max_pods = spec.kubelet.max_pods if spec.kubelet is not None else None
        user_data = await self._credentials.user_data(claim, spec.user_data, max_pods=max_pods, more={})
        ours = tags.of_machine(
            claim,
            order.key,
            cluster=self._cluster,
            class_hash=hash_of(spec, instances=True),
            more=spec.tags,
            already=(),
        )
        group = spec.placement_group
        optional: dict[str, Any] = {
            "authorized_keys": list(spec.authorized_keys),
            "authorized_users": list(spec.authorized_users),
            "firewall_id": spec.firewall_id,
            "disk_encryption": spec.disk_encryption,
            "swap_size": spec.swap_size or NO_SWAP,
            "placement_group": None
            if group is None
            else {
                "id": group.id,
                **({} if group.compliant_only is None else {"compliant_only": group.compliant_only}),
            },
            "metadata": {"user_data": base64.b64encode(user_data.encode()).decode()} if user_data else None,
        }
        if not spec.authorized_keys and not spec.authorized_users:
            # The vendor wants one; nobody ever learns it.
            optional["root_pass"] = f"{self._random.uuid()}-{self._random.uuid()}"
        return {
            "label": label_of(order.name),
            "type": order.key.type,
            "region": self._home.region,
            "image": spec.image or DEFAULT_IMAGE,
            "booted": True,
            "tags": [each for each in ours if not tags.values((each,), tags.MANAGED)],
            **{name: value for name, value in optional.items() if value not in (None, "", [])},
        }

    async def _adopted(self, order: Order) -> wire.Instance:
        """The machine that has the claim's name already, where it is the claim's. Tags that it lost it gets again."""
        label = label_of(order.name)
        found = await self._cloud.instance_labelled(label)
        if found is None:
            raise CloudUnavailable(f"the machine of claim {order.name} came and went: try again")
        owned = self._held.is_at_home(found) and is_by_uid(found, order.claim, cluster=self._cluster)
        if not owned and not self._held.is_ours(found):
            raise CreateError(
                f"the name of claim {order.name} is taken by machine {label} in the account, which is not this cluster's: it"
                f" has not the tag {self._tag}",
                reason=NAME_TAKEN,
                retryable=False,
            )
        if self._held.is_going(found):
            raise CreateError(f"the machine of claim {order.name} is still being deleted", reason=PROVISIONING)
        check_single(found)
        if not owned:
            raise InvariantViolation(
                f"the name of claim {order.name} ({order.uid}) is taken by {self._anothers(found, order.claim)}"
            )
        _log.info("found the machine that was bought before", label=label, number=found.id)
        return await self._made_whole(found, order)

    def _anothers(self, instance: wire.Instance, claim: NodeClaim) -> str:
        """What a machine of this cluster with the claim's label is instead of the claim's."""
        held = tags.uid_of(instance.tags)
        if held:
            return f"the machine of another claim ({held})"
        lacks = ", ".join(missing(instance, claim, cluster=self._cluster))
        return f"machine {instance.id}, which does not say whose it is: put back {lacks} if it is the claim's, or delete it"

    async def _made_whole(self, instance: wire.Instance, order: Order) -> wire.Instance:
        """With the tags that somebody took off. Under the key's lock: whoever keeps the class' tags writes them too."""
        if not missing(instance, order.claim, cluster=self._cluster):
            return instance
        async with self._held.locks.held(tags.key_of_tags(instance.tags, instance.type) or order.key):
            fresh = await self._held.instance(instance.id)
            if fresh is None or not is_by_uid(fresh, order.claim, cluster=self._cluster):
                raise CloudUnavailable(f"the machine of claim {order.name} is another by now: it is tried again")
            lost = missing(fresh, order.claim, cluster=self._cluster)
            _log.warning("tags that a machine lost are put back", number=fresh.id, tags=", ".join(lost))
            return await self._cloud.retag(fresh.id, [*fresh.tags, *lost]) if lost else fresh

    async def of_claim(self, claim: NodeClaim) -> wire.Instance:
        """Of a claim it is not said that it has no machine while one may come that nobody answered for."""
        may_come = self._held.remembered.may_come(claim.metadata.uid)
        try:
            return await super().of_claim(claim)
        except MachineNotFound:
            if claim.status.provider_id and not may_come:
                raise
            found = await self._cloud.instance_labelled(label_of(claim.metadata.name))
            if found is not None and self._held.is_ours(found) and tags.holds(found.tags, claim):
                check_single(found)
            if found is not None and self._held.is_at_home(found) and is_by_uid(found, claim, cluster=self._cluster):
                return found
            if may_come:
                raise self._not_sure(claim) from None
            raise

    def _not_sure(self, claim: NodeClaim) -> CloudUnavailable:
        return CloudUnavailable(
            f"nobody answered a purchase for claim {claim.metadata.name}, and its machine may still come: it is tried again"
        )

    async def delete(self, claim: NodeClaim) -> None:
        """Accepted when it returns. Machines of LKE are not touched."""
        instance = await self.of_claim(claim)
        if self._held.is_going(instance):
            return
        if instance.lke_cluster_id:
            raise InvariantViolation(
                f"machine {instance.id} of claim {claim.metadata.name} is a node of LKE, and is not deleted by itself: take its node"
                " out of its pool at Linode"
            )
        theirs = is_by_uid(instance, claim, cluster=self._cluster) or is_by_name(instance, claim, cluster=self._cluster)
        if not theirs and not self._held.is_ours(instance):
            raise InvariantViolation(
                f"machine {instance.id} of claim {claim.metadata.name} has not this cluster's tag, and is not touched: put back"
                f" {self._tag} if it is to be deleted, or take it out of the claim's status"
            )
        try:
            await self._cloud.delete_instance(instance.id)
        except Refused as error:
            if meaning(error) is not Meaning.GONE:
                raise
            if self._held.remembered.may_come(claim.metadata.uid):
                raise self._not_sure(claim) from None
            raise MachineNotFound(f"there is no machine {tags.provider_id(instance.id)}") from None
        self._held.remembered.ended(instance.id, tags.uid_of(instance.tags))

    async def collect(self) -> int:
        """Every machine is bought for a claim: what has lost its claim is in the list, and goes as all such machines do."""
        return 0


def _is_taken(error: BaseException) -> bool:
    """Whether a purchase was refused because there is a machine of that label."""
    return isinstance(error, Refused) and error.code == "label" and "unique" in error.message.lower()
