"""Machines, and the tags that are put on them."""

import base64
import binascii
import re
from typing import Final

import msgspec

from growth.api.kinds import Json
from growth.sim.clouds.frame import Reply
from growth.sim.clouds.linode.account import LOCKED, Account, kind_of, region_of
from growth.sim.clouds.linode.bodies import InstanceChange, Metadata, NewInstance, NewTag, read
from growth.sim.clouds.linode.objects import Instance
from growth.sim.clouds.linode.tags import checked
from growth.sim.clouds.linode.wire import Query, Refusal, invalid, not_found, page

_LABEL: Final = re.compile(r"[A-Za-z0-9](?:[-_.]?[A-Za-z0-9])*", re.ASCII)
MOST_USER_DATA: Final = 16_384
FILTERS: Final = ("id", "label", "region", "type", "tags", "status", "image", "group", "ipv4")
# From which status, to which meanwhile, and whether it runs in the end.
POWER: Final = {
    "boot": ("offline", "booting", True),
    "reboot": ("running", "rebooting", True),
    "shutdown": ("running", "shutting_down", False),
}
# Of every machine with an image, where nobody says how much.
SWAP_MIB: Final = 512
KEPT: Final = (
    "backups_enabled",
    "disk_encryption",
    "swap_size",
    "authorized_keys",
    "authorized_users",
    "firewall_id",
    "placement_group",
)


class Instances:
    def __init__(self, account: Account) -> None:
        self._account = account

    def listed(self, query: Query, filter_: str) -> Reply:
        bodies = [each.body(self._account.now, listed=True) for each in self._account.instances.values()]
        return page(bodies, query, filter_, by=FILTERS)

    def shown(self, number: int) -> Reply:
        return Reply(200, self._instance(number).body(self._account.now))

    def create(self, body: Json) -> Reply:
        account, asked = self._account, read(body, NewInstance)
        kind, region = kind_of(asked.type), asked.region
        if kind is None:
            raise invalid("type", "A valid plan type by that ID was not found")
        try:
            metadata = region_of(region)
        except KeyError:
            raise invalid("region", "region is not valid") from None
        label = asked.label or f"linode{account.number()}"
        self._label(label)
        image = asked.image or ""
        if image and image not in account.images:
            raise invalid("image", "image is not valid")
        if image and not (asked.root_pass or asked.authorized_keys or asked.authorized_users):
            raise invalid("root_pass", "root_pass is required")
        if asked.firewall_id is not None and asked.firewall_id not in account.firewalls:
            raise invalid("firewall_id", "Firewall not found")
        if asked.placement_group is not None and asked.placement_group.id not in account.placement_groups:
            raise invalid("placement_group.id", "Placement Group not found")
        if asked.placement_group is not None and account.placement_groups[asked.placement_group.id].region != region:
            raise invalid("placement_group.id", "Placement Group is in another region")
        tags = checked(asked.tags or [])
        user_data = _decoded(asked.metadata, supported=metadata)
        if len(account.instances) >= account.limits.instances:
            raise Refusal(400, "Account Limit reached. Please open a support ticket.")
        account.take(kind.id, region, 1)
        # With an image it is booted where nothing is said.
        booted = bool(image) if asked.booted is None else asked.booted
        instance = account.buy(label=label, kind=kind, region=region, tags=tags, booted=booted)
        instance.image, instance.user_data, instance.group = image, user_data, asked.group or ""
        instance.settings = {"swap_size": SWAP_MIB} if image else {}
        told = msgspec.to_builtins(asked)
        instance.settings |= {name: told[name] for name in KEPT if told[name] is not None}
        return Reply(200, instance.body(account.now))

    def update(self, number: int, body: Json) -> Reply:
        instance, asked = self._instance(number), read(body, InstanceChange)
        tags = checked(asked.tags) if asked.tags is not None else None
        if asked.label is not None and asked.label != instance.label:
            self._label(asked.label)
            instance.label = asked.label
        instance.group = instance.group if asked.group is None else asked.group
        instance.watchdog = instance.watchdog if asked.watchdog_enabled is None else asked.watchdog_enabled
        instance.alerts |= asked.alerts or {}
        instance.maintenance_policy = asked.maintenance_policy or instance.maintenance_policy
        if asked.backups is not None and asked.backups.schedule is not None:
            instance.schedule = msgspec.to_builtins(asked.backups.schedule)
        if tags is not None:
            self._account.retag(instance, tags)
        return Reply(200, instance.body(self._account.now))

    def delete(self, number: int) -> Reply:
        instance = self._instance(number)
        if instance.status == "deleting":
            raise Refusal(400, "Linode busy.")
        if instance.locks:
            raise Refusal(400, LOCKED)
        self._account.take_down(instance)
        return Reply(200, {})

    def power(self, number: int, action: str) -> Reply:
        instance = self._instance(number)
        begins, doing, on = POWER[action]
        if instance.status in {"running", "offline"} and instance.status != begins:
            raise Refusal(400, f"Linode {number} is {instance.status}.")
        if instance.status != begins:
            raise Refusal(400, "Linode busy.")
        self._account.power(instance, doing, on=on)
        return Reply(200, {})

    def add_tag(self, body: Json) -> Reply:
        asked = read(body, NewTag)
        (tag,) = checked([asked.label])
        instances = [self._instance(each) for each in asked.linodes or []]
        for instance in instances:
            self._account.retag(instance, checked([*instance.tags, tag]))
        self._account.tags.add(tag)
        return Reply(200, {"label": tag})

    def tags(self, query: Query, filter_: str) -> Reply:
        return page([{"label": each} for each in sorted(self._account.tags)], query, filter_, by=("label",))

    def tagged(self, tag: str, query: Query, filter_: str) -> Reply:
        """What has the tag, as lists show it."""
        self._tag(tag)
        bodies = [each.body(self._account.now, listed=True) for each in self._account.instances.values()]
        found = [{"type": "linode", "data": each} for each in bodies if tag in each["tags"]]
        return page(found, query, filter_, by=("type",))

    def delete_tag(self, tag: str) -> Reply:
        """Nothing has it any more."""
        self._tag(tag)
        for instance in self._account.instances.values():
            if tag in instance.tags:
                self._account.retag(instance, tuple(each for each in instance.tags if each != tag))
        self._account.tags.discard(tag)
        return Reply(200, {})

    def _tag(self, tag: str) -> None:
        if tag not in self._account.tags:
            raise not_found()

    def _instance(self, number: int) -> Instance:
        if number not in self._account.instances:
            raise not_found()
        return self._account.instances[number]

    def _label(self, label: str) -> None:
        if not 3 <= len(label) <= 64 or not _LABEL.fullmatch(label):
            raise invalid("label", "Label must be 3-64 letters, digits, -, _ and .")
        if any(each.label == label for each in self._account.instances.values()):
            raise invalid("label", "Label must be unique among your linodes")


def _decoded(metadata: Metadata | None, *, supported: bool) -> str:
    text = metadata.user_data if metadata is not None else None
    if not text:
        return ""
    if not supported:
        raise invalid("metadata", "The region does not support Metadata")
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise invalid("metadata.user_data", "user_data must be base64-encoded") from None
    if len(raw) > MOST_USER_DATA:
        raise invalid("metadata.user_data", f"user_data must be at most {MOST_USER_DATA} bytes")
    return raw.decode(errors="replace")
