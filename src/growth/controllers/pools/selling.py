"""Whether the cloud sells anything at all that a pool allows, and what of it has ended. No I/O."""

from collections.abc import Iterable

from growth.api import names
from growth.api.instance_types import Catalogue, InstanceType
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


def named(pool: NodePool) -> tuple[str, ...]:
    """The types that its requirements list."""
    return tuple(
        value
        for each in pool.spec.template.spec.requirements
        if names.NORMALISED_LABELS.get(each.key, each.key) == names.INSTANCE_TYPE_LABEL and each.operator == "In"
        for value in each.values
    )


def ended(pool: NodePool, catalogue: Catalogue) -> str:
    """Which of the types that it names can no longer be ordered, and what took their place; empty where none is."""
    known = {kind.name for kind in catalogue.types}
    told = [
        f"{name} can no longer be ordered from {catalogue.cloud}: use {catalogue.successors[name.lower()]}"
        for name in named(pool)
        if name not in known and name.lower() in catalogue.successors
    ]
    return f"spec.template.spec.requirements: {'; '.join(told)}" if told else ""
