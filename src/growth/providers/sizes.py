"""What machines of a node class turned out to hold, whoever sells them. Pure.

For those who know a class and not how its machines are bought.
"""

from typing import Any

from growth.api.kinds import Kind
from growth.api.linodeclasses import LINODE_NODE_CLASS
from growth.api.nodeclasses import HETZNER_NODE_CLASS
from growth.providers.hetzner import classes as hetzner
from growth.providers.learning import Sizes
from growth.providers.linode import classes as linode


def learned_sizes(kind: Kind[Any], node_class: Any) -> Sizes:
    """Capacity and allocatable by type; nothing of classes that do not learn."""
    if kind == HETZNER_NODE_CLASS:
        return hetzner.learned_sizes(node_class)
    if kind == LINODE_NODE_CLASS:
        return linode.learned_sizes(node_class)
    return {}
