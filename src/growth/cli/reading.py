"""What a command is about, read from files or from a cluster, with the catalogue that belongs to it."""

import contextlib
import gc
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from growth.cli.cluster import Cluster
from growth.cli.errors import UsageError
from growth.cli.output import note

if TYPE_CHECKING:
    from growth.api.instance_types import Catalogue
    from growth.cli.live import Named
    from growth.cli.manifests.collection import Collected, Collection

# How often a terminal hears how far the reading has come.
PROGRESS_EVERY: Final = 1000


@contextlib.contextmanager
def collector_off() -> Iterator[None]:
    """A plan is a hundred thousand small values that all live to the end: the collector would only walk them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def gathered(files: list[str] | None, cluster: Cluster, *, also: "Sequence[Named]" = ()) -> "Collection":
    """Everything in the files, or in the cluster where there are none, there with single objects beside what is always read;
    not finished yet.
    """
    from growth.cli.manifests.collection import Collection

    if files and cluster.chosen:
        raise UsageError("-f reads files and --kubeconfig a cluster; give one of them")
    collection = Collection()
    if files:
        _read_files(files, collection)
    else:
        _read_cluster(cluster, collection, also)
    return collection


def finished(
    collection: "Collection", *, expand: bool, instance_types: str | None, provider: str | None
) -> "tuple[Collected, Catalogue]":
    """What was gathered with the catalogue of its cloud; `expand`: with the pods that workloads would make."""
    from growth.cli.catalogue import catalogue_for, cloud_seen, provisioner_of

    cloud = provider or cloud_seen(collection.pools, collection.growth_pools, collection.types_seen)
    collected = collection.finished(provisioner=provisioner_of(cloud), expand=expand)
    for told in collected.notes:
        note(told)
    return collected, catalogue_for(cloud, collected.objects, file=instance_types)


def read(
    files: list[str] | None, cluster: Cluster, *, instance_types: str | None, provider: str | None
) -> "tuple[Collected, Catalogue]":
    """Both at once."""
    collection = gathered(files, cluster)
    return finished(collection, expand=bool(files), instance_types=instance_types, provider=provider)


def _read_files(files: list[str], collection: "Collection") -> None:
    from growth.cli.manifests.documents import documents

    shown = sys.stderr.isatty()
    for number, document in enumerate(documents(files), start=1):
        collection.add(document)
        if shown and number % PROGRESS_EVERY == 0:
            print(f"\rgrowth: {number:,} objects read", end="", file=sys.stderr, flush=True)
    if shown:
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    if not len(collection):
        raise UsageError(f"{', '.join(files)}: there is nothing to plan with: no object of a kind that matters")


def _read_cluster(cluster: Cluster, collection: "Collection", also: "Sequence[Named]") -> None:
    from growth.cli.live import read as read_live

    if sys.stderr.isatty():
        note("reading the cluster …")
    missing = read_live(cluster, collection, also=also)
    if missing:
        note(f"the cluster does not serve {', '.join(missing)}")
