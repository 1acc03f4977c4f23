"""Preemption: which pods of lower priority must go so that a pod fits, as kube-scheduler chooses.

On each node all pods of lower priority are thought away; where the pod fits then, as many as possible are spared, those
of budgets without room first, then the highest priority first. Of the nodes that one wins that breaks the fewest budgets,
then whose most important victim matters least, then with the fewest victims, then by name.
"""

import dataclasses
import itertools
from collections.abc import Callable, Sequence

from growth.api.pods import Pod
from growth.sim.predicates import Host, Scene, fits

NEVER = "Never"


@dataclasses.dataclass(frozen=True, slots=True)
class Sacrifice:
    """Where the pod goes, and who goes for it."""

    node: str
    victims: tuple[Pod, ...]
    broken: int
    """How many of them a budget would protect."""


def choose(pod: Pod, scene: Scene, *, protected: Callable[[Pod], bool]) -> Sacrifice | None:
    """None where the pod may not preempt or where it would not help."""
    if pod.spec.preemption_policy == NEVER:
        return None
    options = [found for host in scene.hosts if (found := _on(pod, host, scene, protected=protected)) is not None]
    return min(options, key=_rank, default=None)


def _rank(option: Sacrifice) -> tuple[int, int, int, str]:
    return option.broken, max(map(priority, option.victims)), len(option.victims), option.node


def _on(pod: Pod, host: Host, scene: Scene, *, protected: Callable[[Pod], bool]) -> Sacrifice | None:
    own = priority(pod)
    is_lower = [priority(each) < own and each.metadata.deletion_timestamp is None for each in host.pods]
    if not any(is_lower):
        return None
    lower = list(itertools.compress(host.pods, is_lower))
    staying = [each for each, low in zip(host.pods, is_lower, strict=True) if not low]
    if not _fits(pod, host, scene, staying):
        return None
    victims: list[Pod] = []
    for each in sorted(lower, key=lambda one: (not protected(one), -priority(one), one.metadata.name)):
        if _fits(pod, host, scene, [*staying, each]):
            staying.append(each)
        else:
            victims.append(each)
    if not victims:
        return None
    return Sacrifice(host.name, tuple(victims), sum(map(protected, victims)))


def _fits(pod: Pod, host: Host, scene: Scene, staying: Sequence[Pod]) -> bool:
    thought = dataclasses.replace(host, pods=list(staying))
    hosts = [thought if each is host else each for each in scene.hosts]
    return fits(pod, thought, dataclasses.replace(scene, hosts=hosts))


def priority(pod: Pod) -> int:
    return pod.spec.priority or 0
