"""How long nodes have been quiet, written down where their pool waits for long: who leads next need not begin anew.

A lull is written on the claim once it has lasted a tenth of the pool's `consolidateAfter`, with the pods that were there, and
taken off when it is over: a node where much happens is not written at all, and one where nothing happens once. Whoever reads it
believes it only where the same pods are there: then nobody came to stay or left while nobody looked. Who came and went again is
not known.
"""

import dataclasses
import datetime as dt
import hashlib
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from growth.api import names
from growth.api.edits import set_annotations
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.api.kinds import Json
from growth.api.nodes import Node
from growth.cluster.shapes import CachedPod
from growth.controllers.disruption.attempts import each
from growth.controllers.environment import Environment
from growth.controllers.ownership import serves
from growth.controllers.quiet import Quiet, counts
from growth.kube.changes import change
from growth.planning import occupants
from growth.units import DurationError, TimestampError, parse_or_never, parse_time, print_time

# Pools that wait for no longer begin anew after a restart: that costs less than to write.
LONG_SECONDS: Final = 900.0
# A lull is written when it has lasted this part of what its pool waits for.
PART: Final = 10
# Times are written in whole seconds, and clocks are not quite even.
SAME_SECONDS: Final = 2.0


@dataclasses.dataclass(frozen=True, slots=True)
class Lull:
    """Since when no pod has come to a node or left it, and who is there, as a digest of their UIDs."""

    since: dt.datetime
    pods: str

    def __str__(self) -> str:
        return f"{print_time(self.since)} {self.pods}"


def lull_of(claim: NodeClaim) -> Lull | None:
    """What is written on the claim; None where nothing is, or it cannot be read."""
    since, _, pods = claim.metadata.annotations.get(names.QUIET_SINCE_ANNOTATION, "").partition(" ")
    try:
        return Lull(parse_time(since), pods)
    except TimestampError:
        return None


def digest(pods: Iterable[CachedPod]) -> str:
    """Of those who come and go by themselves and are there."""
    there = sorted(pod.uid for pod in pods if counts(pod) and occupants.active(pod))
    return hashlib.sha256(" ".join(there).encode()).hexdigest()[:16]


class Lulls:
    """Of all nodes of one process."""

    def __init__(self, env: Environment, quiet: Quiet) -> None:
        self._env = env
        self._quiet = quiet

    def recall(self) -> None:
        """What was written before us. Everything that is read must be synced."""
        now = self._env.clock.now()
        for claim, node, _ in self._waiting():
            written = lull_of(claim)
            if written is not None and written.pods == self._digest(node):
                self._quiet.recall(node.metadata.name, (now - written.since).total_seconds())

    async def write(self, but: Collection[str]) -> None:
        """Writes down what has lasted, and takes off what is over; not of the nodes that move."""
        now = self._env.clock.now()
        new: list[tuple[NodeClaim, Lull | None]] = []
        for claim, node, after in self._waiting():
            if node.metadata.name in but or claim.metadata.deletion_timestamp is not None:
                continue
            seconds = self._quiet.seconds(node.metadata.name)
            since, written = now - dt.timedelta(seconds=seconds), lull_of(claim)
            if written is not None and (since - written.since).total_seconds() < SAME_SECONDS:
                continue  # nothing has happened since
            if seconds >= after / PART:
                new.append((claim, Lull(since, self._digest(node))))
            elif names.QUIET_SINCE_ANNOTATION in claim.metadata.annotations:
                # Somebody came or went whom we saw: whoever leads next could find the same pods and believe it.
                new.append((claim, None))
        await each(new, self._write, attempts=1)

    def _waiting(self) -> Iterator[tuple[NodeClaim, Node, float]]:
        """The claims of pools that wait for long, each with its Node and for how many seconds."""
        state = self._env.state
        for pool in state.pools.store:
            try:
                after = parse_or_never(pool.spec.disruption.consolidate_after)
            except DurationError:
                continue
            if after is None or after.seconds <= LONG_SECONDS:
                continue
            for claim in state.claims.store.find("pool", pool.metadata.name):
                nodes = state.nodes.store.find("provider", claim.status.provider_id) if claim.status.provider_id else ()
                if len(nodes) == 1 and serves(self._env.provider, claim.spec.node_class_ref):
                    yield claim, nodes[0], after.seconds

    def _digest(self, node: Node) -> str:
        return digest(self._env.state.pods.store.find("node", node.metadata.name))

    async def _write(self, item: tuple[NodeClaim, Lull | None]) -> None:
        claim, lull = item

        def edit(draft: Json) -> None:
            meta = draft["metadata"]
            if meta["uid"] == claim.metadata.uid and not meta.get("deletionTimestamp"):
                set_annotations(draft, {names.QUIET_SINCE_ANNOTATION: None if lull is None else str(lull)})

        await change(self._env.api, NODE_CLAIM, claim.metadata.name, edit)
