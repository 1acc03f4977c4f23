"""Nodes."""

from growth.kube.memory.resources import Resource, Strategy


class NodeStrategy(Strategy):
    status = True


RESOURCES = (Resource("", "v1", "Node", "nodes", False, NodeStrategy(), "node", ("no",)),)
