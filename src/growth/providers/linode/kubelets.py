"""What a class says of its machines' kubelets: what is left for pods, and what is wrong with it. Pure.

Kubelets of LKE are LKE's: the class tells how they are set, so that planning reckons with it before the first Node of a type
has reported. Kubelets of instances are told `maxPods` by user data that Growth makes, and nothing else: the rest is refused there.
"""

import dataclasses
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

import msgspec

from growth.api.instance_types import InstanceType
from growth.api.linodeclasses import LinodeKubelet
from growth.providers.nodeclasses import Problem
from growth.units.errors import QuantityError
from growth.units.resources import Amounts, add, amount_of, largest

INVALID: Final = "KubeletInvalid"
UNSUPPORTED: Final = "FieldUnsupported"
MAX_PODS: Final = "maxPods"
# What a kubelet watches, and of which resource it keeps so much from pods.
_WATCHED: Final = {"memory.available": "memory", "nodefs.available": "ephemeral-storage"}
_COUNTED: Final = ("cpu", "memory", "ephemeral-storage")
# As kubelets read shares. Whatever else Python takes for a number, such as NaN%, is none.
_SHARE: Final = re.compile(r"(0*[0-9]{1,3}(?:\.[0-9]*)?|\.[0-9]+)%", re.ASCII)


# What planning reckons with: a field whole, or these keys of it. A grace period belongs to its soft threshold.
_RECKONED: Final[Mapping[str, Collection[str] | None]] = {
    MAX_PODS: None,
    "podsPerCore": None,
    "systemReserved": _COUNTED,
    "kubeReserved": _COUNTED,
    "evictionHard": _WATCHED,
    "evictionSoft": _WATCHED,
    "evictionSoftGracePeriod": None,
}


def fitted(types: Iterable[InstanceType], kubelet: LinodeKubelet | None) -> tuple[InstanceType, ...]:
    """The types with what such kubelets leave to pods. What is no quantity counts nothing: the class is not ready with it."""
    return tuple(types) if kubelet is None else tuple(_fitted(each, kubelet) for each in types)


def _fitted(kind: InstanceType, kubelet: LinodeKubelet) -> InstanceType:
    pods = kubelet.max_pods or kind.capacity["pods"]
    if kubelet.pods_per_core:
        pods = min(pods, kubelet.pods_per_core * kind.capacity["cpu"] // 1000)
    named = add(_reserved(kubelet.system_reserved), _reserved(kubelet.kube_reserved), _watched(kubelet, kind.capacity))
    # A tenth of a core is assumed for what is named here; the memory that machines lack is lacking all the same.
    cpu = max(kind.overhead.get("cpu", 0), named.get("cpu", 0))
    return dataclasses.replace(
        kind, capacity={**kind.capacity, "pods": pods}, overhead={**add(kind.overhead, named), "cpu": cpu}
    )


def _reserved(held: Mapping[str, str]) -> Amounts:
    read = {name: _amount(name, held[name]) for name in _COUNTED if name in held}
    return {name: amount for name, amount in read.items() if amount is not None}


def _watched(kubelet: LinodeKubelet, capacity: Amounts) -> Amounts:
    """The greater of both thresholds."""
    return largest(*(_thresholds(each, capacity) for each in (kubelet.eviction_hard, kubelet.eviction_soft)))


def _thresholds(held: Mapping[str, str], capacity: Amounts) -> Amounts:
    found: dict[str, int] = {}
    for signal, name in _WATCHED.items():
        text = held.get(signal, "")
        share, amount = _share(text), _amount(name, text)
        if share is not None:
            found[name] = int(share * capacity[name])
        elif amount is not None:
            found[name] = amount
    return found


def _share(text: str) -> Decimal | None:
    """Of `5%` a twentieth, of `100%` nothing, which turns a threshold off; None of what is no share."""
    found = _SHARE.fullmatch(text)
    share = Decimal(found[1]) / 100 if found is not None else None
    return share % 1 if share is not None and share <= 1 else None


def _amount(name: str, text: str) -> int | None:
    """None of what is no quantity, or one below zero: that would make machines larger than they are."""
    try:
        amount = amount_of(name, text)
    except QuantityError:
        return None
    return amount if amount >= 0 else None


def problems(kubelet: LinodeKubelet | None) -> Iterator[Problem]:
    """What cannot be reckoned with."""
    if kubelet is None:
        return
    for field, held in (("systemReserved", kubelet.system_reserved), ("kubeReserved", kubelet.kube_reserved)):
        for name, text in held.items():
            if _amount(name, text) is None:
                yield Problem(
                    INVALID, f"spec.kubelet.{field}.{name}: {text!r} is no quantity of zero or more, as 500m or 1Gi are"
                )
    for field, held in (("evictionHard", kubelet.eviction_hard), ("evictionSoft", kubelet.eviction_soft)):
        for name, text in held.items():
            if _share(text) is None and _amount(name, text) is None:
                yield Problem(
                    INVALID,
                    f"spec.kubelet.{field}.{name}: {text!r} is no quantity of zero or more and no share, as 5% is",
                )


def not_reckoned(kubelet: LinodeKubelet | None) -> list[str]:
    """The fields, or keys of them, that say nothing of what is left for pods: where LKE sets kubelets they do nothing."""
    found: list[str] = []
    for field, value in _said(kubelet).items():
        if field not in _RECKONED:
            found.append(field)
            continue
        keys = _RECKONED[field]
        found += [f"{field}.{key}" for key in value if key not in keys] if keys is not None else []
    return sorted(found)


def _said(kubelet: LinodeKubelet | None) -> dict[str, Any]:
    """The fields that somebody wrote, as they are called in manifests."""
    said = msgspec.to_builtins(kubelet) if kubelet is not None else {}
    return {field: value for field, value in said.items() if value not in (None, {}, [])}


def instance_problems(kubelet: LinodeKubelet | None, *, told: bool) -> Iterator[Problem]:
    """What kubelets of instances do not hear. `told`: whether Growth makes the user data that tells them."""
    said = _said(kubelet)
    for field in said:
        if field != MAX_PODS:
            yield Problem(
                UNSUPPORTED, f"spec.kubelet.{field}: kubelets of instances are told maxPods only: leave it out"
            )
    if said.get(MAX_PODS) and not told:
        yield Problem(
            UNSUPPORTED,
            f"spec.kubelet.{MAX_PODS}: kubelets hear of it by user data that Growth makes (spec.userData.mode k3s, kubeadm or"
            " talos): use that, or set it in the image or the raw user data and leave it out here",
        )
