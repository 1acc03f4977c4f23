"""What a class says of its machines' kubelets: what is left for pods, and what is wrong with it. Pure.

Kubelets of LKE are LKE's: the class tells how they are set, so that planning reckons with it before the first Node of a type
has reported. Kubelets of instances are told `maxPods` and nothing else, so the rest is refused there.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Final

import msgspec

from growth.api.instance_types import InstanceType
from growth.api.linodeclasses import LinodeKubelet
from growth.providers.nodeclasses import Problem
from growth.units.errors import QuantityError
from growth.units.resources import Amounts, add, amount_of, amounts, largest

INVALID: Final = "KubeletInvalid"
UNSUPPORTED: Final = "FieldUnsupported"
# What a kubelet watches, and of which resource it keeps so much from pods.
_WATCHED: Final = {"memory.available": "memory", "nodefs.available": "ephemeral-storage"}
_COUNTED: Final = ("cpu", "memory", "ephemeral-storage")


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
    try:
        return amounts({name: each for name, each in held.items() if name in _COUNTED})
    except QuantityError:
        return {}


def _watched(kubelet: LinodeKubelet, capacity: Amounts) -> Amounts:
    """The greater of both thresholds."""
    return largest(*(_thresholds(each, capacity) for each in (kubelet.eviction_hard, kubelet.eviction_soft)))


def _thresholds(held: Mapping[str, str], capacity: Amounts) -> Amounts:
    found: dict[str, int] = {}
    for signal, name in _WATCHED.items():
        text = held.get(signal, "")
        share = _share(text)
        if share is not None:
            found[name] = int(share * capacity[name])
        elif _is_quantity(name, text):
            found[name] = amount_of(name, text)
    return found


def _share(text: str) -> Decimal | None:
    """Of `5%` a twentieth, of `100%` nothing, which turns a threshold off; None of what is no share."""
    try:
        share = Decimal(text.removesuffix("%")) / 100 if text.endswith("%") else None
    except InvalidOperation:
        return None
    return share % 1 if share is not None and 0 <= share <= 1 else None


def _is_quantity(name: str, text: str) -> bool:
    try:
        amount_of(name, text)
    except QuantityError:
        return False
    return True


def problems(kubelet: LinodeKubelet | None) -> Iterator[Problem]:
    """What cannot be reckoned with."""
    if kubelet is None:
        return
    for field, held in (("systemReserved", kubelet.system_reserved), ("kubeReserved", kubelet.kube_reserved)):
        for name, text in held.items():
            if not _is_quantity(name, text):
                yield Problem(INVALID, f"spec.kubelet.{field}.{name}: {text!r} is no quantity, as 500m or 1Gi are")
    for field, held in (("evictionHard", kubelet.eviction_hard), ("evictionSoft", kubelet.eviction_soft)):
        for name, text in held.items():
            if _share(text) is None and not _is_quantity(name, text):
                yield Problem(INVALID, f"spec.kubelet.{field}.{name}: {text!r} is no quantity and no share, as 5% is")


def instance_problems(kubelet: LinodeKubelet | None) -> Iterator[Problem]:
    """What kubelets of instances are not told."""
    said = msgspec.to_builtins(kubelet) if kubelet is not None else {}
    for field, value in said.items():
        if value and field != "maxPods":
            yield Problem(
                UNSUPPORTED, f"spec.kubelet.{field}: kubelets of instances are told maxPods only: leave it out"
            )
