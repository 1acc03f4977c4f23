"""What an account has beside clusters and machines: firewalls, placement groups, locks, images."""

from collections.abc import Collection
from typing import Final

from growth.api.kinds import Json
from growth.sim.clouds.frame import Reply
from growth.sim.clouds.linode.account import Account, region_of
from growth.sim.clouds.linode.bodies import NewFirewall, NewLock, NewPlacementGroup, read
from growth.sim.clouds.linode.objects import Instance, Lock, PlacementGroup
from growth.sim.clouds.linode.tags import checked
from growth.sim.clouds.linode.wire import Query, Refusal, invalid, not_found, page, text_time

OF_FIREWALLS: Final = ("id", "label", "status", "tags")
OF_GROUPS: Final = ("id", "label", "region", "placement_group_type", "placement_group_policy")
OF_LOCKS: Final = ("id", "lock_type")
OF_IMAGES: Final = ("id", "label", "status", "is_public", "type", "vendor", "size")
# Of public images, in MiB.
IMAGE_MIB: Final = 3500


class Belongings:
    """Rules of firewalls and members of placement groups have no effect: machines here have no network and no host."""

    def __init__(self, account: Account) -> None:
        self._account = account

    # -- firewalls --------------------------------------------------------------------------------------------------

    def firewalls(self, query: Query, filter_: str) -> Reply:
        return page([self._firewall(each) for each in self._account.firewalls], query, filter_, by=OF_FIREWALLS)

    def firewall(self, number: int) -> Reply:
        if number not in self._account.firewalls:
            raise not_found()
        return Reply(200, self._firewall(number))

    def add_firewall(self, body: Json) -> Reply:
        asked, account = read(body, NewFirewall), self._account
        label = _label(asked.label, taken=account.firewalls.values())
        if asked.rules is None:
            raise invalid("rules", "rules is required")
        checked(asked.tags or [])
        number = account.number()
        account.firewalls[number] = label
        return Reply(200, self._firewall(number))

    def delete_firewall(self, number: int) -> Reply:
        self.firewall(number)
        del self._account.firewalls[number]
        return Reply(200, {})

    def _firewall(self, number: int) -> Json:
        rules: Json = {"inbound": [], "inbound_policy": "ACCEPT", "outbound": [], "outbound_policy": "ACCEPT"}
        label = self._account.firewalls[number]
        since = text_time(self._account.began)
        return {
            "id": number,
            "label": label,
            "status": "enabled",
            "tags": [],
            "rules": rules,
            "created": since,
            "updated": since,
        }

    # -- placement groups -------------------------------------------------------------------------------------------

    def groups(self, query: Query, filter_: str) -> Reply:
        return page([self._group(each) for each in self._account.placement_groups], query, filter_, by=OF_GROUPS)

    def group(self, number: int) -> Reply:
        if number not in self._account.placement_groups:
            raise not_found()
        return Reply(200, self._group(number))

    def add_group(self, body: Json) -> Reply:
        asked, account = read(body, NewPlacementGroup), self._account
        label = _label(asked.label, taken=[each.label for each in account.placement_groups.values()])
        try:
            region_of(asked.region)
        except KeyError:
            raise invalid("region", "region is not valid") from None
        number = account.number()
        account.placement_groups[number] = PlacementGroup(
            label=label, region=asked.region, kind=asked.placement_group_type, policy=asked.placement_group_policy
        )
        return Reply(200, self._group(number))

    def delete_group(self, number: int) -> Reply:
        self.group(number)
        if self._members(number):
            raise Refusal(400, "Placement Group must be empty before it is deleted.")
        del self._account.placement_groups[number]
        return Reply(200, {})

    def _group(self, number: int) -> Json:
        group = self._account.placement_groups[number]
        return {
            "id": number,
            "label": group.label,
            "region": group.region,
            "placement_group_type": group.kind,
            "placement_group_policy": group.policy,
            "is_compliant": True,
            "members": [{"linode_id": each.id, "is_compliant": True} for each in self._members(number)],
            "migrations": {"inbound": [], "outbound": []},
        }

    def _members(self, number: int) -> list[Instance]:
        held = self._account.instances.values()
        return [each for each in held if (each.settings.get("placement_group") or {}).get("id") == number]

    # -- locks ------------------------------------------------------------------------------------------------------

    def locks(self, query: Query, filter_: str) -> Reply:
        return page([self._lock(each) for each in self._account.locks], query, filter_, by=OF_LOCKS)

    def lock(self, number: int) -> Reply:
        if number not in self._account.locks:
            raise not_found()
        return Reply(200, self._lock(number))

    def add_lock(self, body: Json) -> Reply:
        """Of an instance, and one of it at a time."""
        asked, account = read(body, NewLock), self._account
        if asked.entity_id not in account.instances:
            raise invalid("entity_id", "entity_id is not valid")
        instance = account.instances[asked.entity_id]
        if instance.locks:
            raise Refusal(400, "This resource is locked already.")
        number = account.number()
        account.locks[number] = Lock(instance=instance, kind=asked.lock_type)
        instance.locks = (asked.lock_type,)
        return Reply(200, self._lock(number))

    def delete_lock(self, number: int) -> Reply:
        self.lock(number)
        self._account.locks.pop(number).instance.locks = ()
        return Reply(200, {})

    def _lock(self, number: int) -> Json:
        lock = self._account.locks[number]
        machine = lock.instance
        url = f"/v4/linode/instances/{machine.id}"
        entity = {"id": machine.id, "type": "linode", "label": machine.label, "url": url}
        return {"id": number, "lock_type": lock.kind, "entity": entity}

    # -- images -----------------------------------------------------------------------------------------------------

    def images(self, query: Query, filter_: str) -> Reply:
        return page(self._images(), query, filter_, by=OF_IMAGES)

    def image(self, name: str) -> Reply:
        for each in self._images():
            if each["id"] == name:
                return Reply(200, each)
        raise not_found()

    def _images(self) -> list[Json]:
        since = text_time(self._account.began)
        return [
            {
                "id": name,
                "label": label,
                "description": "",
                "status": "available",
                "created": since,
                "created_by": "linode" if name.startswith("linode/") else "somebody",
                "updated": since,
                "eol": None,
                "expiry": None,
                "deprecated": False,
                "is_public": name.startswith("linode/"),
                "is_shared": False,
                "type": "manual",
                "vendor": label.partition(" ")[0] if name.startswith("linode/") else None,
                "size": IMAGE_MIB,
                "total_size": IMAGE_MIB,
                "regions": [],
                "tags": [],
                "image_sharing": {"shared_with": None, "shared_by": None},
                "capabilities": [] if name in self._account.without_cloud_init else ["cloud-init"],
            }
            for name, label in self._account.images.items()
        ]


def _label(label: str, *, taken: Collection[str]) -> str:
    if not 3 <= len(label) <= 32:
        raise invalid("label", "Label must be 3-32 characters")
    if label in taken:
        raise invalid("label", "Label must be unique")
    return label
