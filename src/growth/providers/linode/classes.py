"""What a LinodeNodeClass asks for, judged: what is wrong with it in words, and the hash by which drift is seen. Pure."""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from growth.api.linodeclasses import LinodeKubelet, LinodeNodeClass, LinodeNodeClassSpec
from growth.providers.catalogues.linode import PODS
from growth.providers.learning import Sizes, sizes
from growth.providers.linode import kubelets, tags
from growth.providers.nodeclasses import Problem
from growth.providers.userdata import RAW

# Of the hash's content: another version is not comparable, and nothing counts as drifted for it.
HASH_VERSION: Final = "v2"
INSTANCE_HASH_VERSION: Final = "v1"

DEFAULT_IMAGE: Final = "linode/ubuntu24.04"
# What images of the vendor's own begin with: plain distributions, which join no cluster by themselves.
_PLAIN: Final = "linode/"

# Reasons of the condition ValidationSucceeded.
TAGS: Final = "TagValidationFailed"
VERSION_UNSUPPORTED: Final = "LKEK8sVersionUnsupported"
VERSION_MISMATCH: Final = "LKEK8sVersionControlPlaneMismatch"
FIREWALL_UNSUPPORTED: Final = "FirewallUnsupported"
FIREWALL_UNREADABLE: Final = "FirewallUnreadable"
NOT_FOUND: Final = "NotFoundAtLinode"
UNSUPPORTED: Final = kubelets.UNSUPPORTED


def hash_of(spec: LinodeNodeClassSpec, *, instances: bool = False) -> str:
    """Equal for classes whose machines would be equal, also where one names what machines get anyway.

    Tags are changed on machines in place, so they are left out. `instances`: of machines that are no nodes of LKE, for which more
    fields have an effect.
    """
    return _digest(_without_defaults(spec), instances=instances)


def hashes_of(spec: LinodeNodeClassSpec, *, instances: bool = False) -> tuple[str, ...]:
    """Of machines that are as the class would make them: `hash_of`, and what it was while a default counted as any other value."""
    return tuple(dict.fromkeys((hash_of(spec, instances=instances), _digest(spec, instances=instances))))


def _without_defaults(spec: LinodeNodeClassSpec) -> LinodeNodeClassSpec:
    """As if nobody had named what is so anyway."""
    kubelet = spec.kubelet
    if kubelet is not None and kubelet.max_pods in {0, PODS}:
        kubelet = msgspec.structs.replace(kubelet, max_pods=None)
    return msgspec.structs.replace(
        spec,
        lke_k8s_version=spec.lke_k8s_version or None,
        image="" if spec.image == DEFAULT_IMAGE else spec.image,
        swap_size=spec.swap_size or None,
        kubelet=None if kubelet == LinodeKubelet() else kubelet,
    )


def _digest(spec: LinodeNodeClassSpec, *, instances: bool) -> str:
    content: dict[str, object] = {
        "firewallID": spec.firewall_id,
        "lkeK8sVersion": spec.lke_k8s_version,
        "kubelet": spec.kubelet if instances else None,  # those of LKE are LKE's, whatever the class says of them
    }
    if instances:
        content |= {
            "image": spec.image,
            "authorizedKeys": sorted(spec.authorized_keys),
            "authorizedUsers": sorted(spec.authorized_users),
            "diskEncryption": spec.disk_encryption,
            "swapSize": spec.swap_size,
            "placementGroup": spec.placement_group,
            "userData": spec.user_data,
        }
    digest = hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()[:16]
    return f"{INSTANCE_HASH_VERSION if instances else HASH_VERSION}-{digest}"


def learned_sizes(node_class: LinodeNodeClass, *, instances: bool | None = None) -> Sizes:
    """What machines of the class, as it is now, turned out to hold. None: whether they are nodes of LKE or not."""
    sorts = (False, True) if instances is None else (instances,)
    made = [found for each in sorts for found in hashes_of(node_class.spec, instances=each)]
    return sizes(node_class.status.learned_types, made=made)


def differs(held: str, wanted: Collection[str]) -> bool:
    """Whether a machine's hash is none of its class', made in the same way. One made otherwise says nothing."""
    return held not in wanted and held.partition("-")[0] in {each.partition("-")[0] for each in wanted}


def problems(spec: LinodeNodeClassSpec, *, enterprise: bool) -> Iterator[Problem]:
    """What is wrong with the class for nodes of LKE, whatever the account holds."""
    yield from _of_tags(spec)
    yield from kubelets.problems(spec.kubelet)
    if not enterprise and spec.lke_k8s_version:
        yield Problem(
            VERSION_UNSUPPORTED,
            "spec.lkeK8sVersion: nodes of a standard cluster have the cluster's version: leave it out",
        )
    if not enterprise and spec.firewall_id is not None:
        yield Problem(
            FIREWALL_UNSUPPORTED,
            "spec.firewallID: only pools of LKE Enterprise can be given a firewall: leave it out",
        )


def without_effect(spec: LinodeNodeClassSpec) -> list[str]:
    """The fields that the class names and that do nothing on LKE. They are no problem: existing manifests have them."""
    held = {
        **_never_made(spec),
        "authorizedKeys": spec.authorized_keys,
        "authorizedUsers": spec.authorized_users,
        "diskEncryption": spec.disk_encryption,
        "image": spec.image,
        "placementGroup": spec.placement_group,
        "swap_size": spec.swap_size,
        "userData": spec.user_data,
    }
    of_kubelets = [f"kubelet.{field}" for field in kubelets.not_reckoned(spec.kubelet)]
    return sorted([*(field for field, value in held.items() if value), *of_kubelets])


def instance_problems(spec: LinodeNodeClassSpec) -> Iterator[Problem]:
    """What is wrong with the class for machines that are no nodes of LKE. What has no effect is refused."""
    yield from _of_tags(spec)
    made = spec.user_data is not None and spec.user_data.mode != RAW
    yield from kubelets.instance_problems(spec.kubelet, told=made)
    for field, value in {"lkeK8sVersion": spec.lke_k8s_version, **_never_made(spec)}.items():
        if value:
            yield Problem(UNSUPPORTED, f"spec.{field}: Growth cannot make such instances: leave it out")


def instance_remark(spec: LinodeNodeClassSpec) -> str:
    """What people should know of a class for machines that are no nodes of LKE; empty where there is nothing."""
    image = spec.image or DEFAULT_IMAGE
    if spec.user_data is not None or not image.startswith(_PLAIN):
        return ""
    return (
        f"spec.userData is not set, and machines of Linode's image {image} join no cluster without it: say how they join, or"
        " name an image of your own that joins by itself"
    )


def _never_made(spec: LinodeNodeClassSpec) -> Mapping[str, object]:
    """What is read from manifests and never asked of the vendor."""
    return {
        "osDisk": spec.os_disk,
        "dataDisks": spec.data_disks,
        "configuration": spec.configuration,
        "vpcID": spec.vpc_id,
        "ipv6Options": spec.ipv6_options,
        "backupsEnabled": spec.backups_enabled,
    }


def _of_tags(spec: LinodeNodeClassSpec) -> Iterator[Problem]:
    for each in spec.tags:
        if not tags.SHORTEST <= len(each) <= tags.LONGEST:
            yield Problem(
                TAGS, f"spec.tags: {each!r} has {len(each)} characters: Linode takes {tags.SHORTEST} to {tags.LONGEST}"
            )
        elif tags.is_ours(each):
            yield Problem(TAGS, f"spec.tags: {each!r} is one of Growth's own tags: leave it out")
        elif tags.is_lkes(each):
            yield Problem(
                TAGS, f"spec.tags: {each!r} is one of LKE's own tags, which say whose a machine is: leave it out"
            )


def version_problem(spec: LinodeNodeClassSpec, *, control_plane: str, sold: Sequence[str]) -> Problem | None:
    """Nodes may be older than the control plane, never newer, and only of a version that is there."""
    wanted = spec.lke_k8s_version
    if not wanted:
        return None
    if wanted not in sold and wanted != control_plane:
        return Problem(
            VERSION_UNSUPPORTED, f"spec.lkeK8sVersion: LKE has no {wanted}: use one of {', '.join(sorted(sold))}"
        )
    if _numbers(wanted) > _numbers(control_plane):
        return Problem(
            VERSION_MISMATCH,
            f"spec.lkeK8sVersion: {wanted} is newer than the control plane's {control_plane}: upgrade the cluster first",
        )
    return None


def _numbers(version: str) -> tuple[int, ...]:
    """`v1.33.4+lke1` as (1, 33, 4, 1)."""
    return tuple(
        int(digits)
        for part in version.lstrip("v").replace("+lke", ".").split(".")
        if (digits := part).isascii() and digits.isdigit()
    )
