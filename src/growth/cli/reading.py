"""What a command is about, read from files or from a cluster, with the catalogue that belongs to it."""

import contextlib
import dataclasses
import gc
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Final, Literal

from cyclopts import Parameter

from growth.cli.cluster import Cluster
from growth.cli.errors import UsageError
from growth.cli.output import note

if TYPE_CHECKING:
    from growth.api.instance_types import Catalogue
    from growth.cli.live import Named
    from growth.cli.manifests.collection import Collected, Collection

# How often a terminal hears how far the reading has come.
PROGRESS_EVERY: Final = 1000


@Parameter(name="*")
@dataclasses.dataclass(frozen=True, slots=True)
class Source:
    """The options of every command that thinks about a whole cluster: what is read, and what can be bought for it."""

    file: Annotated[
        list[str] | None,
        Parameter(
            name=["--file", "-f"],
            consume_multiple=True,
            negative=(),
            help="Manifests, YAML or JSON: a file, a folder, or - for standard input. May be given several times."
            " Without it: the cluster, read-only.",
        ),
    ] = None
    instance_types: Annotated[
        str | None, Parameter(help="What can be bought, as a file in the format of Karpenter's KWOK provider.")
    ] = None
    provider: Annotated[
        Literal["kwok", "hetzner", "linode"] | None,
        Parameter(
            help="The cloud whose built-in catalogue is used. Without it: the one that the pools name, else kwok."
        ),
    ] = None
    cluster: Cluster = dataclasses.field(default_factory=Cluster)


LIVE: Final = Source()


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


def gathered(source: Source, *, also: "Sequence[Named]" = ()) -> "Collection":
    """Everything in the files, or in the cluster where there are none, there with single objects beside what is always read;
    not finished yet.
    """
    from growth.cli.manifests.collection import Collection

    if source.file == []:
        raise UsageError("-f names no file; give a file, a folder, or - for standard input, or leave it out")
    if source.file and source.cluster.chosen:
        raise UsageError("-f reads files and --kubeconfig a cluster; give one of them")
    collection = Collection()
    if source.file:
        _read_files(source.file, collection)
    else:
        _read_cluster(source.cluster, collection, also)
    return collection


def finished(source: Source, collection: "Collection") -> "tuple[Collected, Catalogue]":
    """What was gathered with the catalogue of its cloud; of files with the pods that workloads would make."""
    from growth.cli.catalogue import catalogue_for, cloud_seen, provisioner_of

    cloud = source.provider or cloud_seen(collection.pools, collection.growth_pools, collection.types_seen)
    collected = collection.finished(provisioner=provisioner_of(cloud), expand=bool(source.file))
    for told in collected.notes:
        note(told)
    return collected, catalogue_for(cloud, collected.objects, file=source.instance_types)


def read(source: Source) -> "tuple[Collected, Catalogue]":
    """Both at once."""
    return finished(source, gathered(source))


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
