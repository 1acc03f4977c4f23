"""Which catalogue a plan is made with: a file's, or the built-in one of the cloud that the pools mean."""

import pathlib
from collections.abc import Iterable
from typing import Final

from growth.api.growthpools import GrowthPool
from growth.api.instance_types import Catalogue
from growth.api.karpenter import NodePool
from growth.api.linodeclasses import LINODE_NODE_CLASS
from growth.api.nodeclasses import HETZNER_NODE_CLASS, KWOK_NODE_CLASS
from growth.cli.errors import UsageError
from growth.cluster.assemble import Objects
from growth.providers.catalogues import builtin, currency_of, hetzner, kwok, linode
from growth.providers.catalogues.file import CatalogueError, load

_CLASSES: Final = {HETZNER_NODE_CLASS: hetzner.CLOUD, LINODE_NODE_CLASS: linode.CLOUD, KWOK_NODE_CLASS: kwok.CLOUD}
_CLASS_KINDS: Final = {kind.kind: cloud for kind, cloud in _CLASSES.items()}
# The clouds whose machines KWOK can play, its own first.
_PLAYED: Final = (kwok.CLOUD, hetzner.CLOUD, linode.CLOUD)
_PROVISIONERS: Final = {hetzner.CLOUD: "csi.hetzner.cloud", linode.CLOUD: "linodebs.csi.linode.com"}


def provisioner_of(cloud: str) -> str:
    """The CSI driver of the cloud's volumes; empty where there is none."""
    return _PROVISIONERS.get(cloud, "")


def cloud_of(pools: Iterable[NodePool], growth_pools: Iterable[GrowthPool]) -> str:
    """The cloud that the pools mean: by the kinds of their node classes, else by the names of their server types."""
    clouds: set[str] = set()
    for pool in pools:
        found = _CLASS_KINDS.get(pool.spec.template.spec.node_class_ref.kind)
        if found is not None:
            clouds.add(found)
    for each in growth_pools:
        reference = each.spec.node_class_ref
        found = _CLASS_KINDS.get(reference.kind) if reference is not None else _cloud_by_types(each)
        if found is not None:
            clouds.add(found)
    if len(clouds) > 1:
        named = " and ".join(sorted(clouds))
        raise UsageError(f"the pools mean {named}, and a plan has one catalogue: choose it with --provider")
    return clouds.pop() if clouds else kwok.CLOUD


def cloud_seen(pools: Iterable[NodePool], growth_pools: Iterable[GrowthPool], types: Iterable[str]) -> str:
    """The cloud that a live cluster buys from. KWOK may play another cloud's machines: then their types tell which one."""
    said = cloud_of(pools, growth_pools)
    seen = {each.lower() for each in types if each}
    if said != kwok.CLOUD or not seen:
        return said
    known = {cloud: seen & {kind.name.lower() for kind in builtin(cloud, dedicated=True).types} for cloud in _PLAYED}
    return max(_PLAYED, key=lambda cloud: len(known[cloud]))


def served_by(cloud: str, objects: Objects) -> frozenset[tuple[str, str]]:
    """The (group, kind) of node classes that a plan with the cloud's catalogue is about, as `growth run` serves its own only.

    A catalogue may be tried on another cloud's pools: where none is of its own kind, all kinds that we know count. Where none
    is of any of them, the cluster is Karpenter's on a cloud that we do not know, and planned as if it were ours: none.
    """
    uses = [pool.spec.template.spec.node_class_ref for pool in objects.pools]
    uses += [each.spec.node_class_ref for each in objects.growth_pools if each.spec.node_class_ref is not None]
    known = {(kind.group, kind.kind): own for kind, own in _CLASSES.items()}
    clouds = {known[each.group, each.kind] for each in uses if (each.group, each.kind) in known}
    if cloud in clouds:
        return frozenset(kind for kind, own in known.items() if own == cloud)
    return frozenset(known) if clouds or objects.growth_pools else frozenset()


def _cloud_by_types(pool: GrowthPool) -> str | None:
    asked = {each.name.lower() for each in pool.spec.server_types}
    for cloud in (hetzner.CLOUD, linode.CLOUD, kwok.CLOUD):
        known = {kind.name for kind in builtin(cloud, dedicated=True).types} | set(hetzner.SUCCESSORS)
        if asked & known:
            return cloud
    return None


def catalogue_for(cloud: str, objects: Objects, *, file: str | None) -> Catalogue:
    """The catalogue in the file, or the built-in one of the cloud."""
    if file is not None:
        try:
            return load(pathlib.Path(file), cloud=cloud, currency=currency_of(cloud))
        except CatalogueError as error:
            raise UsageError(str(error)) from error
    return builtin(cloud, dedicated=_names_dedicated(objects))


def _names_dedicated(objects: Objects) -> bool:
    """Whether a pool names a machine that can only be owned: nobody gets one without asking for it."""
    named = {each.name.lower() for pool in objects.growth_pools for each in pool.spec.server_types}
    for pool in objects.pools:
        named |= {value.lower() for each in pool.spec.template.spec.requirements for value in each.values}
    return bool(named & hetzner.DEDICATED)
