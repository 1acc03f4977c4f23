"""CapacityBuffers: looks up what each stands for, hands its pods to the provisioner, and says in its status what came of it.

Templates and workloads are read when needed and not watched: there may be thousands, and a buffer asks for one.
"""

from collections.abc import Callable, Sequence
from typing import Final

from growth.api import names
from growth.api.buffers import CAPACITY_BUFFER, CapacityBuffer
from growth.api.edits import set_condition
from growth.api.kinds import Json
from growth.cluster.snapshot import Demand
from growth.controllers import headroom
from growth.controllers.environment import Environment
from growth.controllers.headroom import Outcome, Resolved
from growth.controllers.reconciler import Reconciler
from growth.kube.changes import change
from growth.kube.errors import Conflict, NotFound
from growth.kube.store import Change, Deleted, Key

# How often templates and workloads are read again, as Karpenter does.
AGAIN_SECONDS: Final = 30.0


class Buffers:
    """`demands` and `placed` are the provisioner's side, `run` the buffers' own."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._demands: dict[Key, tuple[Demand, ...]] = {}
        self._outcome = Outcome()
        self._changed: list[Callable[[str], None]] = []
        self._reconciler: Reconciler[Key] = Reconciler("buffers", self._reconcile, random=env.random, workers=4)
        env.state.buffers.subscribe(self._on_buffer)

    async def run(self) -> None:
        await self._reconciler.run()

    # The provisioner's side.

    def demands(self) -> Sequence[Demand]:
        return [each for key in sorted(self._demands) for each in self._demands[key]]

    def subscribe(self, changed: Callable[[str], None]) -> None:
        self._changed.append(changed)

    def placed(self, outcome: Outcome) -> None:
        """A pass has looked at all of them."""
        if outcome == self._outcome:
            return
        self._outcome = outcome
        self._env.state.keep_for_buffers(outcome.machines)
        for key in self._demands:
            self._reconciler.add(key)

    # The buffers' side.

    def _on_buffer(self, news: Change[CapacityBuffer]) -> None:
        if isinstance(news, Deleted):
            self._want(news.key, ())
        self._reconciler.add(news.key)

    def _want(self, key: Key, demands: tuple[Demand, ...]) -> None:
        before = self._demands.pop(key, ())
        if demands:
            self._demands[key] = demands
        if demands != before:
            self._env.state.leave_room(self.demands())
            for changed in self._changed:
                changed("buffer")

    async def _reconcile(self, key: Key) -> float | None:
        buffer = self._env.state.buffers.store.get(key[1], key[0])
        going = buffer is None or buffer.metadata.deletion_timestamp is not None
        if buffer is None or going or not headroom.strategy_is_ours(buffer.spec):
            self._want(key, ())
            return None
        resolved = await self._resolve(buffer)
        shapes = self._env.state.shapes
        template = resolved.template
        self._want(key, headroom.demands(buffer, template, resolved.number, shapes) if template is not None else ())
        await self._tell(buffer, resolved)
        return AGAIN_SECONDS

    async def _resolve(self, buffer: CapacityBuffer) -> Resolved:
        asked = headroom.reference(buffer.spec)
        if isinstance(asked, Resolved):
            return asked
        kind, name = asked
        try:
            found = await self._env.api.get(kind, name, namespace=buffer.metadata.namespace)
        except NotFound:
            found = None
        return headroom.resolved(buffer, kind, name, found)

    async def _tell(self, buffer: CapacityBuffer, resolved: Resolved) -> None:
        if self._env.settings.observe:
            return
        meta = buffer.metadata
        keys = [each.key for each in self._demands.get((meta.namespace, meta.name), ())]
        now = self._env.clock.now()

        def edit(draft: Json) -> None:
            if draft["metadata"]["uid"] != meta.uid:
                raise Conflict(f"CapacityBuffer {meta.name} is another one now")
            status: Json = draft.setdefault("status", {})
            ready = resolved.template is not None
            if ready:
                status["replicas"] = resolved.number
                status["provisioningStrategy"] = names.ACTIVE_CAPACITY_STRATEGY
                status.pop("podTemplateRef", None)
                status.pop("podTemplateGeneration", None)
                if resolved.template_name:
                    status["podTemplateRef"] = {"name": resolved.template_name}
                    if resolved.template_generation is not None:
                        status["podTemplateGeneration"] = resolved.template_generation
            set_condition(
                draft,
                names.READY_FOR_PROVISIONING,
                status="True" if ready else "False",
                reason=resolved.reason,
                message=resolved.message,
                now=now,
            )
            if not ready:
                told = ("False", headroom.NOT_READY, "the buffer is not ready for provisioning")
            elif not keys:
                told = ("False", headroom.BUFFER_EMPTY, "the buffer asks for no room")
            else:
                told = headroom.provisioning(keys, self._outcome)
            if told[0]:
                set_condition(draft, names.PROVISIONING, status=told[0], reason=told[1], message=told[2], now=now)

        await change(self._env.api, CAPACITY_BUFFER, meta.name, edit, namespace=meta.namespace, subresource="status")
