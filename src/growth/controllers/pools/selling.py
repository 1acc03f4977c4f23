"""Whether the cloud sells anything at all that a pool allows. No I/O."""

from collections.abc import Iterable

from growth.api.instance_types import InstanceType
from growth.api.karpenter import NodePool
from growth.planning.offerings import option_labels
from growth.planning.requirements import from_expressions


def sold(pool: NodePool, types: Iterable[InstanceType]) -> bool:
    """Whether an offering has the labels that the pool requires; stock does not count, it changes by itself.

    Labels that no offering has are the pool's own to set.
    """
    wanted = from_expressions(pool.spec.template.spec.requirements)
    for kind in types:
        for offering in kind.offerings:
            labels = option_labels(kind, offering)
            if all(any(map(wanted[key].allows, labels[key])) for key in wanted.keys() & labels.keys()):
                return True
    return False
