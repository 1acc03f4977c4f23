"""`growth crds`: the CustomResourceDefinitions, ready to be applied."""

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from cyclopts import Parameter

from growth.cli.cluster import Cluster, connected
from growth.cli.errors import UsageError, explained
from growth.cli.output import note, print_json, print_table, print_yaml

if TYPE_CHECKING:
    from growth.kube.api import Api

OURS: Final = "growth.dev"
ALL: Final = "all"

# One that is away must not keep anybody waiting for a page of YAML. A busy machine must yet be able to ask in that time:
# what is printed without a look may cost somebody else's kinds their fields.
CLUSTER_SECONDS: Final = 20.0

# How many unknown fields a note names before it only counts them.
NAMED_FIELDS: Final = 3

AS_KUBECTL: Final = Cluster()

Crd = dict[str, Any]


def crds(
    *,
    group: Annotated[
        str | None,
        Parameter(help="Print this API group only: growth.dev, karpenter.sh, …; `all` prints everything, unasked."),
    ] = None,
    output: Annotated[
        Literal["yaml", "json", "table"], Parameter(name=["--output", "-o"], help="The format.")
    ] = "yaml",
    cluster: Cluster = AS_KUBECTL,
) -> None:
    """Print the CustomResourceDefinitions that Growth needs.

    Install them with `growth crds | kubectl apply -f -`. Kinds that the cluster has already from somebody else
    (Karpenter's, say) and that hold fields unknown to Growth are left out, so that nothing of theirs is lost; a line on
    stderr names them. Where no cluster can be asked, everything is printed.
    """
    from growth.api.crds import all_crds

    chosen = all_crds()
    if group is None:
        chosen = _without_foreign(chosen, cluster)
    elif group != ALL:
        groups = sorted({crd["spec"]["group"] for crd in chosen})
        chosen = [crd for crd in chosen if crd["spec"]["group"] == group]
        if not chosen:
            raise UsageError(f"--group {group} is unknown; choose one of {', '.join(groups)} or {ALL}")
    _print(chosen, output)


def _print(chosen: list[Crd], output: str) -> None:
    if output == "yaml":
        print_yaml(chosen)
    elif output == "json":
        print_json({"apiVersion": "v1", "kind": "List", "items": chosen})
    else:
        print_table(
            ("name", "kind", "versions", "scope"),
            (
                (
                    crd["metadata"]["name"],
                    crd["spec"]["names"]["kind"],
                    ",".join(version["name"] for version in crd["spec"]["versions"]),
                    crd["spec"]["scope"],
                )
                for crd in chosen
            ),
        )


def _without_foreign(chosen: list[Crd], cluster: Cluster) -> list[Crd]:
    """Those that can be applied to the cluster without loss; all of them where no cluster answers."""
    import asyncio

    from growth.cli.unknown_fields import unknown_fields
    from growth.kube.errors import ConfigError, KubeError

    # Kinds of our own group are ours to change.
    shared = [crd["metadata"]["name"] for crd in chosen if crd["spec"]["group"] != OURS]
    try:
        present = asyncio.run(_present(shared, cluster))
    except (KubeError, TimeoutError) as error:
        if isinstance(error, ConfigError) and cluster.chosen:
            raise
        reason = f"no answer in {CLUSTER_SECONDS:.0f} s" if isinstance(error, TimeoutError) else explained(error)[0]
        note(f"every kind is printed, without a look at what the cluster has: {reason}")
        return chosen
    kept = []
    for crd in chosen:
        name = crd["metadata"]["name"]
        unknown = unknown_fields(present[name], crd) if name in present else []
        if unknown:
            named = ", ".join(unknown[:NAMED_FIELDS])
            more = f" and {len(unknown) - NAMED_FIELDS} more" if len(unknown) > NAMED_FIELDS else ""
            note(f"{name} is left out: the cluster's own has {named}{more}, unknown to Growth; `--group all` prints it")
        else:
            kept.append(crd)
    return kept


async def _present(names: list[str], cluster: Cluster) -> dict[str, Crd]:
    """The definitions of these names that the cluster has."""
    import asyncio

    async with asyncio.timeout(CLUSTER_SECONDS), connected(cluster, deadline_seconds=CLUSTER_SECONDS) as api:
        found = await asyncio.gather(*(_definition(api, name) for name in names))
    return {name: crd for name, crd in zip(names, found, strict=True) if crd is not None}


async def _definition(api: "Api", name: str) -> Crd | None:
    from growth.api.kinds import Kind
    from growth.kube.errors import NotFound

    kind: Kind[Crd] = Kind(
        group="apiextensions.k8s.io",
        version="v1",
        kind="CustomResourceDefinition",
        plural="customresourcedefinitions",
        namespaced=False,
        type=dict,
    )
    try:
        return await api.get(kind, name)
    except NotFound:
        return None
