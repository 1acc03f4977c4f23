"""What requests carry, as the vendor reads it: a field of another form is refused by its name, and one that is unknown is skipped."""

import re
from typing import Annotated, Final, Literal, TypeVar

import msgspec

from growth.api.kinds import Json
from growth.sim.clouds.linode.wire import Refusal, invalid

B = TypeVar("B")

_PLACE: Final = re.compile(r"(.*) - at `(?:key in )?\$\.?(.*)`", re.DOTALL)
_INDEX: Final = re.compile(r"\[[^]]*\]")


Encryption = Literal["enabled", "disabled"]


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """Base: null is as good as nothing."""


class Metadata(Body, frozen=True):
    user_data: str | None = None


class PlacementGroup(Body, frozen=True):
    id: int
    compliant_only: bool | None = None


class NewInstance(Body, frozen=True):
    type: str = ""
    region: str = ""
    label: str | None = None
    image: str | None = None
    root_pass: str | None = None
    authorized_keys: list[str] | None = None
    authorized_users: list[str] | None = None
    backups_enabled: bool | None = None
    booted: bool | None = None
    disk_encryption: Encryption | None = None
    group: str | None = None
    firewall_id: int | None = None
    metadata: Metadata | None = None
    placement_group: PlacementGroup | None = None
    swap_size: Annotated[int, msgspec.Meta(ge=0)] | None = None
    tags: list[str] | None = None


class InstanceChange(Body, frozen=True):
    group: str | None = None
    label: str | None = None
    tags: list[str] | None = None
    watchdog_enabled: bool | None = None


class NewTag(Body, frozen=True):
    label: str = ""
    linodes: list[int] | None = None


class Taint(Body, frozen=True):
    key: Annotated[str, msgspec.Meta(min_length=1)]
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    value: str | None = None


class Autoscaler(Body, frozen=True):
    """Of a pool; what is left out stays as it is."""

    enabled: bool | None = None
    min: int | None = None
    max: int | None = None


class PoolChange(Body, frozen=True):
    count: int | None = None
    label: str | None = None
    tags: list[str] | None = None
    taints: list[Taint] | None = None
    labels: dict[str, str] | None = None
    autoscaler: Autoscaler | None = None
    k8s_version: str | None = None
    update_strategy: Literal["rolling_update", "on_recycle"] | None = None
    firewall_id: int | None = None


class NewPool(PoolChange, frozen=True):
    type: str = ""
    disk_encryption: Encryption | None = None


def read(body: Json, kind: type[B]) -> B:
    """A 400 that names the field where something is of another form."""
    try:
        return msgspec.convert(body, kind)
    except msgspec.ValidationError as error:
        raise _refusal(str(error)) from None


def _refusal(said: str) -> Refusal:
    found = _PLACE.fullmatch(said)
    return invalid(_INDEX.sub("", found[2]), found[1]) if found is not None else Refusal(400, said)
