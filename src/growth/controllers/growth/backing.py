"""Back-off of pods that nothing can hold: listens for what may bring them back, and keeps the mark on those left out."""

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Final

from growth.api import names
from growth.api.conditions import find
from growth.api.events import WARNING
from growth.api.growthpools import PROVISIONING, UNMET, GrowthPool, NodeRequest
from growth.api.karpenter import NodeClaim, NodePool
from growth.api.meta import ObjectReference
from growth.api.pods import POD
from growth.cluster.node_requests import server_type
from growth.cluster.shapes import CachedPod, PodShape
from growth.cluster.wanting import wants_machine
from growth.controllers.environment import Environment
from growth.controllers.growth.matching import resting_with
from growth.controllers.growth.resting import ANY, Resting, Rhythm
from growth.controllers.ownership import marked_paused
from growth.controllers.provisioning.freshness import unmet
from growth.controllers.reconciler import Reconciler
from growth.kube.errors import NotFound
from growth.kube.store import Change, Changed, Deleted, Key
from growth.planning.plan import Unplaced
from growth.telemetry.metrics import Declaration, Gauge
from growth.units import print_time

BACKED_OFF: Final = Gauge("growth_pods_backed_off", "Pods that nothing could hold for long, and that plans leave out.")
METRICS: Final[tuple[Declaration, ...]] = (BACKED_OFF,)

WORKERS: Final = 10


class BackOffs:
    """Asked by the provisioner before and after each plan; `run` writes marks until cancelled."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        settings = env.settings
        self._resting = Resting(
            Rhythm(
                passes=settings.unplaceable_passes,
                first=settings.back_off,
                ceiling=settings.back_off_ceiling,
                recheck=settings.back_off_recheck,
            )
        )
        self._pools: dict[PodShape, str] = {}
        self._trigger: Callable[[str], None] = lambda _: None
        self._marks: Reconciler[Key] = Reconciler("pod.backoff", self._write, random=env.random, workers=WORKERS)
        env.metrics.read(BACKED_OFF, lambda: [({}, float(len(self._resting)))])
        state = env.state
        state.growth_pools.subscribe(self._on_growth_pool)
        state.pools.subscribe(self._on_pool)
        state.pods.subscribe(self._on_pod)
        state.node_requests.subscribe(self._on_request)
        state.claims.subscribe(self._on_claim)

    def subscribe(self, trigger: Callable[[str], None]) -> None:
        """`trigger` is called with a word when pods come back."""
        self._trigger = trigger

    async def run(self) -> None:
        await self._marks.run()

    def __len__(self) -> int:
        """How many pods are marked."""
        return len(self._resting)

    # For plans.

    def left_out(self) -> frozenset[str]:
        """Keys of pods that the next plan leaves out."""
        return self._resting.left_out(self._env.clock.monotonic())

    def looked(self, pods: Mapping[str, CachedPod], unplaced: Sequence[Unplaced], *, bought: Set[str]) -> None:
        """What came of a plan for these pods."""
        refused = {each.pod: frozenset(reason.filter for reason in each.reasons) for each in unplaced}
        pools = {key: self._pool_of(pods[key].shape) for key in refused if key in pods}
        pools = {key: pool for key, pool in pools.items() if pool}
        marked = self._resting.looked(pods, refused, pools, self._env.clock.monotonic(), bought=bought)
        for pod in marked:
            self._marks.add((pod.namespace, pod.name))
        for key, pod in pods.items():
            if key not in refused and names.BACK_OFF_ANNOTATION in pod.annotations:
                self._marks.add((pod.namespace, pod.name))

    def next_due(self) -> float | None:
        """In how many seconds a plan is due because somebody's rest is over; None for never by itself."""
        return self._resting.next_due(self._env.clock.monotonic())

    def _pool_of(self, shape: PodShape) -> str:
        found = self._pools.get(shape)
        if found is None:
            state = self._env.state
            known = {pool.metadata.name for pool in state.growth_pools.store}
            found = self._pools[shape] = resting_with(shape.spec, known, karpenter=bool(len(state.pools.store)))
        return found

    # What brings pods back.

    def _back(self, pods: Sequence[CachedPod], why: str) -> None:
        if pods:
            for pod in pods:
                self._marks.add((pod.namespace, pod.name))
            self._trigger(why)

    def _on_growth_pool(self, news: Change[GrowthPool]) -> None:
        if isinstance(news, Changed) and _same(news.old, news.new):
            lapsed = {type_ for type_, _, _ in unmet(news.old) - unmet(news.new)}
            for type_ in sorted(lapsed):
                if self._resting.recovers(news.key[1], type_):
                    self._trigger("an unmet offering may be had again")
            return
        self._pools.clear()
        if self._env.state.growth_pools.synced:  # else they are listed for the first time, and nothing changed
            self._back(self._resting.changed(news.key[1]), "growth pool")

    def _on_pool(self, news: Change[NodePool]) -> None:
        if isinstance(news, Changed) and _same(news.old, news.new):
            return
        self._pools.clear()
        if self._env.state.pools.synced:
            self._back(self._resting.changed(), "pool")

    def _on_request(self, news: Change[NodeRequest]) -> None:
        if isinstance(news, Deleted):
            request = news.old
            unmet = request.status.phase == UNMET
            if unmet and self._resting.recovers(request.spec.pool, server_type(request).lower()):
                self._trigger("an unmet type may be had again")
        elif isinstance(news, Changed) and news.old.status.phase != news.new.status.phase == PROVISIONING:
            self._back(self._resting.had(news.new.spec.pool), "a machine was had")

    def _on_claim(self, news: Change[NodeClaim]) -> None:
        if isinstance(news, Deleted) and news.old.status.provider_id:  # one that never had a machine makes no room
            pool = news.old.metadata.labels.get(names.POOL_LABEL)
            if pool is not None:
                self._back(self._resting.room(pool), "there is room again")

    def _on_pod(self, news: Change[CachedPod]) -> None:
        if isinstance(news, Deleted):
            self._resting.gone(news.old)
            return
        pod = news.new
        if not wants_machine(pod):
            self._resting.gone(pod)
            return
        now = self._env.clock.monotonic()
        pool = self._pool_of(pod.shape) if names.BACK_OFF_ANNOTATION in pod.annotations else ""
        if self._resting.seen(pod, pool, now, self._env.clock.now()) and self._resting.recovers(pool, ANY):
            self._trigger("marked pods were found")

    # Marks.

    async def _write(self, key: Key) -> float | None:
        """Makes the annotation say what is so."""
        env = self._env
        pod = env.state.pods.store.get(key[1], key[0])
        if pod is None or env.settings.observe:
            return None
        marked = self._resting.marked(pod)
        if marked == (names.BACK_OFF_ANNOTATION in pod.annotations):
            return None
        text = print_time(env.clock.now()) if marked else None
        patch = {"metadata": {"annotations": {names.BACK_OFF_ANNOTATION: text}}}
        try:
            await env.api.patch(POD, pod.name, patch, namespace=pod.namespace, uid=pod.uid)
        except NotFound:
            return None
        if marked:
            env.events.event(
                ObjectReference(api_version="v1", kind="Pod", namespace=pod.namespace, name=pod.name, uid=pod.uid),
                names.BACK_OFF,
                "Nothing could hold the pod for long: plans leave it out until its pool, the pod or what can be had changes",
                type=WARNING,
            )
        return None


def _same(old: GrowthPool | NodePool, new: GrowthPool | NodePool) -> bool:
    """Whether nothing changed that a plan would see: the spec, a pause, readiness."""
    return (
        old.metadata.generation == new.metadata.generation
        and old.metadata.uid == new.metadata.uid
        and marked_paused(old.metadata) == marked_paused(new.metadata)
        and _ready(old) == _ready(new)
    )


def _ready(pool: GrowthPool | NodePool) -> str:
    told = find(pool.status.conditions, names.READY)
    return told.status if told is not None else ""
