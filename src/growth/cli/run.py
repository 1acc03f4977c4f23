"""`growth run`: the autoscaler itself."""

import dataclasses
import os
import sys
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Group, Parameter

from growth.cli.cluster import Cluster
from growth.cli.errors import RunFailed, UsageError
from growth.operator.settings import SECTIONS, TABLE, SettingError, read

AS_KUBECTL: Final = Cluster()


def _flags() -> Any:
    """The flags as a class that the parser understands, made from the table of settings."""
    fields: list[tuple[str, Any, Any]] = []
    for order, section in enumerate(SECTIONS):
        group = Group(section.title, sort_key=10 + order)
        for setting in section.settings:
            shown = "" if setting.default is None else setting.value.show(setting.default)
            note = Parameter(
                name=setting.flag,
                help=f"{setting.doc} [{setting.variable}{f'; {shown}' if shown not in {'', 'none'} else ''}]",
                negative=None if setting.value.switch else (),
                group=group,
                show_default=False,
            )
            kind: Any = bool if setting.value.switch else str
            fields.append((setting.field, Annotated[kind | None, note], dataclasses.field(default=None)))
    made = dataclasses.make_dataclass("Flags", fields, frozen=True)
    made.__module__ = __name__  # the parser looks into classes only that are not the standard library's
    return Parameter(name="*")(made)


if TYPE_CHECKING:
    Flags = Any
else:
    Flags = _flags()
NONE_GIVEN: Final = Flags()


def run(*, settings: Flags = NONE_GIVEN, cluster: Cluster = AS_KUBECTL) -> None:
    """Run the autoscaler in a cluster, until it is told to stop.

    It watches pods that no node can hold, buys machines for them, and gives back what is no longer needed. Every flag is
    also a variable: --batch-idle is GROWTH_BATCH_IDLE. With --observe it only plans and writes Decisions.
    """
    import asyncio

    from growth.kube.errors import GateClosed
    from growth.operator import process
    from growth.operator.checks import Refused

    given = {name: getattr(settings, setting.field) for name, setting in TABLE.items()}
    if given["namespace"] is None and not os.environ.get(TABLE["namespace"].variable):
        given["namespace"] = process.home(os.environ)
    try:
        chosen = read(given, os.environ)
        asyncio.run(process.run(chosen, kubeconfig=cluster.kubeconfig, context=cluster.context, environ=os.environ))
    except SettingError as error:
        raise UsageError(str(error)) from error
    except (Refused, GateClosed) as error:
        raise RunFailed(str(error)) from error
    # A plan that is still being made in the worker thread is nobody's any more: Python would wait for it.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
