"""Loggers, and what a line is about.

An event's name is a constant and its values are fields, so that lines can be counted and searched:

    _log = logger("lifecycle")

    with about(NodeClaim=claim.name):
        _log.info("launched nodeclaim", instance_type=machine.type, price=machine.price)

Every line inside the block, in whatever module or task started there, carries the object. The set-up (`growth.operator.logs`)
decides on format, level and destination; before it a line goes to the console as structlog does by default.
"""

from contextlib import AbstractContextManager
from typing import cast

import structlog
from structlog.typing import FilteringBoundLogger


def logger(controller: str) -> FilteringBoundLogger:
    """A logger whose lines carry the controller's name. Made at import; it follows the set-up that comes later."""
    return cast("FilteringBoundLogger", structlog.get_logger(controller=controller))


def about(**fields: object) -> AbstractContextManager[None]:
    """Binds fields to every line inside the block and in tasks started there; the block's end restores what was before."""
    return cast("AbstractContextManager[None]", structlog.contextvars.bound_contextvars(**fields))


def bound(field: str) -> str:
    """What `about` has bound to the field here; empty where nothing is."""
    return str(structlog.contextvars.get_contextvars().get(field, ""))
