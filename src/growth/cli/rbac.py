"""`growth rbac`: the rights that Growth needs, ready for `kubectl apply -f -`."""

from typing import Annotated, Literal

from cyclopts import Parameter

from growth.cli.output import print_json, print_yaml


def rbac(
    *,
    namespace: Annotated[str, Parameter(help="Growth's own namespace.")] = "growth",
    provider: Annotated[
        Literal["kwok", "hetzner", "linode", "linode-instances"],
        Parameter(help="The cloud in which machines are bought."),
    ] = "kwok",
    read_only: Annotated[
        bool,
        Parameter(
            negative=(),
            help="Only the account growth-reader, for people who ask and change nothing: plan, explain, whatif, top.",
        ),
    ] = False,
    output: Annotated[Literal["yaml", "json"], Parameter(name=["--output", "-o"], help="The format.")] = "yaml",
) -> None:
    """Print the service accounts and roles that Growth needs.

    `growth` is the autoscaler's, `growth-kwok` that of the simulated cloud of --provider kwok. Apply them with
    `growth rbac | kubectl apply -f -`; the namespace must be there. With --provider hetzner the autoscaler may also read
    Secrets by name in its own namespace, with what machines join, and make bootstrap tokens; with --provider linode it may
    keep LinodeNodeClasses, with linode-instances (for --linode-region) both.
    """
    from growth.operator.roles import objects, reader

    made = reader(namespace=namespace) if read_only else objects(namespace=namespace, provider=provider)
    if output == "json":
        print_json({"apiVersion": "v1", "kind": "List", "items": made})
    else:
        print_yaml(made)
