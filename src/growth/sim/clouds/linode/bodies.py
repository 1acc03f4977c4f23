"""What requests carry, as the vendor reads it: a field of another form is refused by its name, and one that is unknown is skipped."""

import re
from typing import Annotated, Any, Final, Literal, TypeVar

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


class Schedule(Body, frozen=True):
    day: str | None = None
    window: str | None = None


class Backups(Body, frozen=True):
    """Whether there are any is asked for by other calls, which nobody makes here."""

    schedule: Schedule | None = None


class InstanceChange(Body, frozen=True):
    alerts: dict[str, int] | None = None
    backups: Backups | None = None
    group: str | None = None
    label: str | None = None
    maintenance_policy: Literal["linode/migrate", "linode/power_off_on"] | None = None
    tags: list[str] | None = None
    watchdog_enabled: bool | None = None


class NewFirewall(Body, frozen=True):
    label: str = ""
    rules: dict[str, Any] | None = None
    tags: list[str] | None = None


class NewPlacementGroup(Body, frozen=True):
    placement_group_type: Literal["anti_affinity:local", "affinity:local"]
    label: str = ""
    region: str = ""
    placement_group_policy: Literal["strict", "flexible"] = "strict"


class NewLock(Body, frozen=True):
    entity_type: Literal["linode"]
    entity_id: int
    lock_type: Literal["cannot_delete", "cannot_delete_with_subresources"]


class NewTag(Body, frozen=True):
    label: str = ""
    linodes: list[int] | None = None


# Letters and digits, and between them dashes, underscores and dots; before a key's slash a DNS subdomain.
_PLAIN: Final = "[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
_DOMAIN: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_KEY: Final = rf"^(?:(?P<domain>{_DOMAIN})/)?(?P<name>{_PLAIN})$"
LONGEST_NAME: Final = 63
LONGEST_DOMAIN: Final = 253
# Of a label's key with a domain: in all, and after the slash.
LONGEST_LABEL: Final = 128
LONGEST_LABEL_NAME: Final = 62
_Value = Annotated[str, msgspec.Meta(max_length=LONGEST_NAME, pattern=f"^({_PLAIN})?$")]


class Taint(Body, frozen=True):
    key: str
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    value: _Value | None = None


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
    labels: dict[str, _Value] | None = None
    autoscaler: Autoscaler | None = None
    k8s_version: str | None = None
    update_strategy: Literal["rolling_update", "on_recycle"] | None = None
    firewall_id: int | None = None


class NewPool(PoolChange, frozen=True):
    type: str = ""
    disk_encryption: Encryption | None = None


def check_keys(change: PoolChange) -> None:
    """As LKE takes them: labels' keys are shorter than Kubernetes allows."""
    for taint in change.taints or ():
        domain, name = _parts("taints.key", taint.key)
        if len(name) > LONGEST_NAME or len(domain) > LONGEST_DOMAIN:
            raise invalid("taints.key", f"A taint's key has at most {LONGEST_NAME} characters after its domain")
    for key in change.labels or ():
        domain, name = _parts("labels", key)
        if len(name) > (LONGEST_LABEL_NAME if domain else LONGEST_NAME) or len(key) > LONGEST_LABEL:
            raise invalid(
                "labels", f"A label's key has at most {LONGEST_NAME} characters, or {LONGEST_LABEL} with its domain"
            )


def _parts(field: str, key: str) -> tuple[str, str]:
    found = re.match(_KEY, key)
    if found is None or key.endswith("\n"):
        raise invalid(field, f"{key!r} is no key of Kubernetes")
    return found["domain"] or "", found["name"]


def read(body: Json, kind: type[B]) -> B:
    """A 400 that names the field where something is of another form."""
    try:
        return msgspec.convert(body, kind)
    except msgspec.ValidationError as error:
        raise _refusal(str(error)) from None


def _refusal(said: str) -> Refusal:
    found = _PLACE.fullmatch(said)
    return invalid(_INDEX.sub("", found[2]), found[1]) if found is not None else Refusal(400, said)
