"""The kinds that every cluster serves, each with the defaults, admission and rules that Growth and its users meet.

One module a family. What is left out: fields that only kubelets and storage drivers check, and everything that needs
a feature gate.
"""

from growth.kube.memory.builtin import core, nodes, pods, storage, workloads
from growth.kube.memory.resources import Resource

RESOURCES: tuple[Resource, ...] = (
    *core.RESOURCES,
    *nodes.RESOURCES,
    *pods.RESOURCES,
    *storage.RESOURCES,
    *workloads.RESOURCES,
)
