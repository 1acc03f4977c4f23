"""What is known of the machines at this moment, put into a question. Reads the cache only; a fresh look can be laid over it."""

import dataclasses
import datetime as dt
from collections.abc import Collection, Iterator, Mapping

import msgspec

from growth.api import names
from growth.api.conditions import TRUE, find
from growth.api.growthpools import EMPTY, GrowthPool
from growth.api.karpenter import NodeClaim, NodePool
from growth.api.nodes import Node
from growth.cluster.assemble import Picture
from growth.cluster.counting import Counted
from growth.cluster.machines import Machine, doubt
from growth.cluster.paying import paid_until
from growth.cluster.pricing import by_name
from growth.cluster.shapes import CachedPod
from growth.controllers.disruption.memory import Memory
from growth.controllers.disruption.question import Question
from growth.controllers.disruption.surroundings import Surroundings
from growth.controllers.environment import Environment
from growth.controllers.growth.sparing import Sparing
from growth.controllers.ownership import serves
from growth.controllers.quiet import Quiet
from growth.controllers.vain import Vain
from growth.planning.disruption.situating import Facts


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Fresh:
    """A node as the server has it now, with its claim and its pods."""

    node: Node
    claim: NodeClaim
    pods: tuple[CachedPod, ...]


class Looking:
    """Follows from its construction on; what was before is not known, and counts as busy."""

    def __init__(self, env: Environment, memory: Memory) -> None:
        self._env = env
        self._vain = Vain(env)
        self._memory = memory
        self.quiet = Quiet(env)
        self._sparing = Sparing(env)
        self._began = env.clock.monotonic()
        self._served = frozenset((kind.group, kind.kind) for kind in env.provider.node_classes)

    def begin(self) -> None:
        """From now on we may act: whoever nominates has had no chance before."""
        self._began = self._env.clock.monotonic()

    def question(
        self,
        acting: Collection[str],
        *,
        closed: frozenset[str] = frozenset(),
        fresh: Mapping[str, Fresh] | None = None,
        pools: Mapping[str, NodePool] | None = None,
        growth_pools: Mapping[str, GrowthPool] | None = None,
        around: Surroundings | None = None,
    ) -> Question:
        """`acting` are nodes of moves that wait or run, but for the one that is asked about; `closed` are such as take no pods. A
        catalogue must be known.
        """
        env = self._env
        picture = self._vain.laid(env.state.picture(env.clock.now()))
        picture = _overlaid(picture, fresh or {}, pools or {}, growth_pools or {})
        if around is not None:
            picture = self._corrected(picture, around)
        acting = {*acting, *self._being_removed()}
        facts = {name: self._facts(counted.machine, acting=name in acting) for name, counted in picture.counted.items()}
        pods = {name: env.state.pods.store.find("node", name) for name in facts}
        pods |= {} if around is None else around.pods
        pods |= {name: each.pods for name, each in (fresh or {}).items()}
        return Question(
            picture=picture,
            facts=facts,
            pods=pods,
            disruption_budgets=tuple(env.state.disruption_budgets.store) if around is None else around.budgets,
            moved=self._memory.moved(env.state.pods.store),
            buffered=env.state.buffered,
            paused=env.settings.paused,
            served=self._served,
            spared=self._sparing.nodes(),
            closed=closed,
        )

    def _being_removed(self) -> Iterator[str]:
        """Nodes of growth pools whose pods are asked to leave: their moves are over, and they are on their way out."""
        for each in self._env.state.node_removals.store:
            if each.spec.reason != EMPTY and each.spec.node_name:
                yield each.spec.node_name

    def _corrected(self, picture: Picture, around: Surroundings) -> Picture:
        """The picture with the room that there really is, and those who wait for some."""
        counted = dict(picture.counted)
        for name, node in around.nodes.items():
            machine = counted[name].machine if name in counted else None
            if machine is None or machine.node is None:
                continue
            if node is None or node.spec.provider_id != machine.node.spec.provider_id:
                del counted[name]
                continue
            claim = around.claims.get(node.spec.provider_id, machine.claim)
            counted[name] = self._env.state.corrected(
                dataclasses.replace(machine, node=node, claim=claim), around.pods.get(name, ())
            )
            if claim is not None and machine.claim is None:
                self._without_expected(counted, claim)
        return dataclasses.replace(picture, counted=counted, pending=around.waiting)

    @staticmethod
    def _without_expected(counted: dict[str, Counted], claim: NodeClaim) -> None:
        """The machine that is counted for a claim whose Node was not known to be its own is that Node's: it is there once."""
        for name, each in [*counted.items()]:
            expected = each.machine.claim
            if each.machine.node is None and expected is not None and expected.metadata.name == claim.metadata.name:
                del counted[name]

    def _facts(self, machine: Machine, *, acting: bool) -> Facts:
        env, node, claim = self._env, machine.node, machine.claim
        if node is None:
            return Facts(acting=acting)
        foreign, doubt = self._foreign(claim), self._doubt(node)
        if claim is None:
            return Facts(foreign=foreign, doubt=doubt)
        name = node.metadata.name
        up = self._initialized_seconds(claim)
        return Facts(
            quiet_seconds=min(self.quiet.seconds(name), up),
            nominated=self._nominated(name, claim.metadata.name, up),
            holds_buffer=any(map(env.state.kept_for_buffer, (name, claim.metadata.name))),
            acting=acting,
            doubt=doubt,
            foreign=foreign,
            paid_until=self._paid_until(claim),
        )

    def _paid_until(self, claim: NodeClaim) -> dt.datetime | None:
        env, catalogue = self._env, self._env.state.catalogue
        if not env.settings.use_paid_time or catalogue is None:
            return None
        return paid_until(claim, by_name(catalogue.types), env.clock.now())

    def _foreign(self, claim: NodeClaim | None) -> str:
        if claim is None or serves(self._env.provider, claim.spec.node_class_ref):
            return ""
        uses = claim.spec.node_class_ref
        return f"its node class is a {uses.kind} of {uses.group}, which another provider serves"

    def _doubt(self, node: Node) -> str:
        """Also of a Node that no claim was matched with, where another Node is matched with its claim."""
        provider_id, state = node.spec.provider_id, self._env.state
        claims = state.claims.store.find("provider", provider_id) if provider_id else ()
        if not any(serves(self._env.provider, claim.spec.node_class_ref) for claim in claims):
            return ""
        return doubt(provider_id, nodes=len(state.nodes.store.find("provider", provider_id)), claims=len(claims))

    def _initialized_seconds(self, claim: NodeClaim) -> float:
        """For how long the claim has said so. Its Node may be marked before: a write fails, or waits behind another."""
        told = find(claim.status.conditions, names.INITIALIZED)
        if told is None or told.last_transition_time is None or told.status != TRUE:
            return 0.0
        return (self._env.clock.now() - told.last_transition_time).total_seconds()

    def _nominated(self, node: str, claim: str, up: float) -> bool:
        """Also while whoever nominates has had no chance yet: we have just begun, or the node has just come up."""
        env, window = self._env, self._env.settings.nomination
        if env.clock.monotonic() - self._began < window or up < window:
            return True
        return env.state.nominated(node, claim)


def _overlaid(
    picture: Picture,
    fresh: Mapping[str, Fresh],
    pools: Mapping[str, NodePool],
    growth_pools: Mapping[str, GrowthPool],
) -> Picture:
    """The picture with what the server said a moment ago of some nodes and pools."""
    counted = dict(picture.counted)
    for name, each in fresh.items():
        if name in counted:
            machine = dataclasses.replace(counted[name].machine, node=each.node, claim=each.claim)
            counted[name] = msgspec.structs.replace(counted[name], machine=machine)
    return dataclasses.replace(
        picture,
        counted=counted,
        pools=tuple(pools.get(pool.metadata.name, pool) for pool in picture.pools),
        growth_pools=tuple(growth_pools.get(pool.metadata.name, pool) for pool in picture.growth_pools),
    )
