"""The cloud's half of KWOK: brings machines up and takes them down, as their records ask.

    record pending  ──► at its time the kubelet registers a Node ──► running
    record deleting ──► record removed ──► Node removed, as a cloud controller manager does for machines that are gone

All it knows is in the records and the Nodes, so a restart goes on where the last run stopped. A Node of that name that
belongs to somebody else is left alone and waited for, as a kubelet would.
"""

import asyncio
import collections
import contextlib
import dataclasses
import datetime as dt
from typing import Final

from growth.api import names
from growth.api.core import CONFIG_MAP, ConfigMap
from growth.api.nodes import NODE, Node
from growth.kube.api import Api
from growth.kube.backoff import BackoffSettings
from growth.kube.errors import AlreadyExists, ConfigError, Conflict, GateClosed, KubeError, NotFound
from growth.kube.informer import Informers, Selection
from growth.kube.queue import WorkQueue
from growth.kube.store import Change, Deleted
from growth.ports import Clock, Random
from growth.providers.kwok import records
from growth.providers.kwok.faults import FaultBook
from growth.providers.kwok.records import Record, State, Unreadable
from growth.telemetry.logs import logger

_log = logger("kwok")

RETRY: Final = BackoffSettings(base_seconds=0.1, cap_seconds=30.0, jitter=0.2)
# A machine that a fault holds back is looked at again so often.
FAULT_SECONDS: Final = 1.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RegistrarSettings:
    """Seconds. `deletion` is how long a machine takes to go down, `node_removal` how much later its Node goes."""

    deletion: float = 0.0
    node_removal: float = 0.0
    workers: int = 20
    kwok_controller: bool = False


DEFAULT_REGISTRAR: Final = RegistrarSettings()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RegistrarStatistics:
    registered: int = 0
    deleted: int = 0
    vanished: int = 0
    nodes_removed: int = 0
    failed: int = 0


class Registrar:
    """`run` plays the cloud until cancelled. One at a time is meant to; two do no harm."""

    def __init__(
        self,
        api: Api,
        *,
        cluster: str,
        namespace: str,
        clock: Clock,
        random: Random,
        faults: FaultBook | None = None,
        settings: RegistrarSettings = DEFAULT_REGISTRAR,
    ) -> None:
        self._api = api
        self._cluster = cluster
        self._namespace = namespace
        self._clock = clock
        self._settings = settings
        self._faults = faults or FaultBook(api, namespace=namespace, clock=clock)
        self._informers = Informers(api, clock=clock, random=random)
        mine = f"{names.KWOK_MACHINE_LABEL}={cluster}"
        self._records = self._informers.watch(CONFIG_MAP, selection=Selection(namespace=namespace, labels=mine))
        self._nodes = self._informers.watch(NODE, selection=Selection(labels=mine))
        self._queue: WorkQueue[str] = WorkQueue(random, retry=RETRY)
        self._counts: collections.Counter[str] = collections.Counter()
        # Records (by uid) whose kubelet registered, although the watch may still say that it is to.
        self._registered: dict[str, None] = {}
        # When a machine that goes down is gone, and when its Node goes after it; by the object's uid.
        self._due: dict[str, float] = {}
        self._records.subscribe(self._on_record)
        self._nodes.subscribe(self._on_node)

    def statistics(self) -> RegistrarStatistics:
        return RegistrarStatistics(**self._counts)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._informers.run(), name="kwok informers")
            await self._informers.wait_synced()
            for _ in range(self._settings.workers):
                group.create_task(self._work(), name="kwok registrar")

    def _on_record(self, change: Change[ConfigMap]) -> None:
        if isinstance(change, Deleted):
            self._registered.pop(change.old.metadata.uid, None)
        self._queue.add(change.key[1].removeprefix(names.KWOK_MACHINE_PREFIX))

    def _on_node(self, change: Change[Node]) -> None:
        if not isinstance(change, Deleted):
            self._queue.add(change.key[1])

    async def _work(self) -> None:
        while True:
            claim = await self._queue.get()
            try:
                again = await self._attend(claim)
                self._queue.forget(claim)
                if again is not None:
                    self._queue.add_after(claim, again)
            except (GateClosed, ConfigError):
                raise
            except KubeError as error:
                self._counts["failed"] += 1
                seconds = self._queue.retry(claim)
                _log.debug("the simulated cloud will try again", machine=claim, error=str(error), again=seconds)
            finally:
                self._queue.done(claim)

    async def _attend(self, claim: str) -> float | None:
        """One step of one machine; in how many seconds to look again."""
        item = self._records.store.get(records.record_name(claim), self._namespace)
        if item is None:
            return await self._remove_node(claim)
        try:
            record = records.read(item)
        except Unreadable as error:
            _log.warning("a machine's record cannot be read", machine=claim, error=str(error))
            return None
        faults = await self._faults.current()
        if record.state is State.DELETING:
            if not faults.can_be_deleted(claim, record.instance_type):
                return FAULT_SECONDS
            return await self._take_down(record, self._settings.deletion)
        after = faults.vanishes(claim, record.instance_type)
        if after is not None:
            age = (self._clock.now() - (record.created or self._clock.now())).total_seconds()
            if age >= after:
                self._counts["vanished"] += 1
                return await self._take_down(record, 0.0)
        look = None if after is None else max(FAULT_SECONDS, after - age)
        if record.state is State.PENDING and record.uid not in self._registered:
            if not faults.registers(claim, record.instance_type):
                return FAULT_SECONDS
            wait = (record.registers_at - self._clock.now()) / dt.timedelta(seconds=1)
            if wait > 0:
                return wait if look is None else min(wait, look)
            await self._register(record, broken=not faults.becomes_ready(claim, record.instance_type))
        return look

    async def _register(self, record: Record, *, broken: bool) -> None:
        body = records.node_body(
            record, cluster=self._cluster, kwok_controller=self._settings.kwok_controller, broken=broken
        )
        try:
            await self._api.create(NODE, body)
        except AlreadyExists as error:
            known = await self._api.get(NODE, record.claim)
            if not _is_of(known, record.claim_uid):
                if known.metadata.labels.get(names.KWOK_MACHINE_LABEL) == self._cluster:
                    # An earlier machine's of the same name, which is gone: its record would be in our place.
                    await self._delete_node(known)
                raise Conflict(f"Node {record.claim} is another machine's: the kubelet cannot register") from error
        self._counts["registered"] += 1
        await self._api.patch(
            CONFIG_MAP,
            records.record_name(record.claim),
            {"data": {"state": State.RUNNING.value}},
            namespace=self._namespace,
            uid=record.uid,
            revision=record.revision,
        )
        self._registered[record.uid] = None

    async def _take_down(self, record: Record, seconds: float) -> float | None:
        if (left := self._left(record.uid, seconds)) > 0:
            return left
        with contextlib.suppress(NotFound):
            await self._api.delete(
                CONFIG_MAP, records.record_name(record.claim), namespace=self._namespace, uid=record.uid
            )
            self._counts["deleted"] += 1
        self._due.pop(record.uid, None)
        return None

    async def _remove_node(self, claim: str) -> float | None:
        """The Node of a machine that is gone. Looked at afresh: the record may have come back under the same name."""
        node = self._nodes.store.get(claim)
        if node is None or node.metadata.deletion_timestamp is not None:
            return None
        if (left := self._left(node.metadata.uid, self._settings.node_removal)) > 0:
            return left
        try:
            await self._api.get(CONFIG_MAP, records.record_name(claim), namespace=self._namespace)
        except NotFound:
            await self._delete_node(node)
        return None

    async def _delete_node(self, node: Node) -> None:
        self._due.pop(node.metadata.uid, None)
        if node.metadata.deletion_timestamp is None:
            with contextlib.suppress(NotFound):
                await self._api.delete(NODE, node.metadata.name, uid=node.metadata.uid)
                self._counts["nodes_removed"] += 1

    def _left(self, uid: str, seconds: float) -> float:
        """How long still until something that takes `seconds` from its first mention is over."""
        if seconds <= 0:
            return 0.0
        now = self._clock.monotonic()
        return self._due.setdefault(uid, now + seconds) - now


def _is_of(node: Node, claim_uid: str) -> bool:
    return node.metadata.annotations.get(records.CLAIM_UID_ANNOTATION) == claim_uid
