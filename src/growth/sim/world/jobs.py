"""The controller of Jobs: as many pods at a time as asked for, until enough of them have succeeded.

As kube-controller-manager: a pod that is deleted or fails before it has succeeded is replaced, and what was created and
has not been seen yet counts. Not here: back-off between failures, indexes, time limits, suspension half-way.
"""

import contextlib
from typing import Final

from growth.api.kinds import Json
from growth.api.pods import POD, Pod
from growth.api.workloads import JOB, Job
from growth.kube.api import Api
from growth.kube.errors import NotFound
from growth.kube.queue import WorkQueue
from growth.kube.store import Change, Deleted, Key
from growth.ports import Clock, Random
from growth.sim.world.keeping import keep_all
from growth.sim.world.templates import pod_of
from growth.sim.world.view import View
from growth.units import print_time

EXPECTATION_SECONDS: Final = 300.0


class Jobs:
    """`run` keeps Jobs until cancelled."""

    def __init__(self, api: Api, view: View, *, clock: Clock, random: Random) -> None:
        self._api = api
        self._view = view
        self._clock = clock
        self._jobs = view.jobs
        self._pods = view.pods
        self._queue: WorkQueue[Key] = WorkQueue(random)
        # By the Job's uid: pods that were made and have not been seen yet, and until when they are waited for.
        self._expected: dict[str, dict[str, float]] = {}
        # Succeeded pods may be removed before their Job has ended; they count all the same.
        self._succeeded: dict[str, dict[str, None]] = {}
        self._jobs.subscribe(self._on_job)
        self._pods.subscribe(self._on_pod)

    async def run(self) -> None:
        await keep_all(self._view, self._queue, self._keep)

    def _on_job(self, change: Change[Job]) -> None:
        if isinstance(change, Deleted):
            self._expected.pop(change.old.metadata.uid, None)
            self._succeeded.pop(change.old.metadata.uid, None)
        else:
            self._queue.add(change.key)

    def _on_pod(self, change: Change[Pod]) -> None:
        pod = change.old if isinstance(change, Deleted) else change.new
        for owner in pod.metadata.owner_references:
            if owner.kind == "Job":
                self._expected.get(owner.uid, {}).pop(pod.metadata.uid, None)
                if pod.status.phase == "Succeeded":
                    self._succeeded.setdefault(owner.uid, {})[pod.metadata.uid] = None
                self._queue.add((change.key[0], owner.name))

    async def _keep(self, key: Key) -> None:
        job = self._jobs.store.get(key[1], key[0])
        if job is None or job.metadata.deletion_timestamp is not None or job.spec.suspend or _is_over(job):
            return
        uid, now = job.metadata.uid, self._clock.monotonic()
        waiting = {pod: until for pod, until in self._expected.get(uid, {}).items() if until > now}
        self._expected[uid] = waiting
        if waiting:
            self._queue.add_after(key, min(waiting.values()) - now)
            return
        pods = self._pods.store.find("owner", uid)
        active = [pod for pod in pods if _active(pod)]
        succeeded = len(self._succeeded.get(uid, {}))
        wanted = job.spec.completions if job.spec.completions is not None else 1
        over = succeeded >= wanted
        missing = 0 if over else min(job.spec.parallelism, wanted - succeeded) - len(active)
        if missing > 0:
            body = pod_of(await self._api.get(JOB.raw, key[1], namespace=key[0]), JOB)
            for _ in range(missing):
                made = await self._api.create(POD, body, namespace=key[0])
                if self._pods.store.get(made.metadata.name, key[0]) is None:
                    waiting[made.metadata.uid] = now + EXPECTATION_SECONDS
        failed = sum(pod.status.phase == "Failed" for pod in pods)
        await self._tell(job, active=len(active) + max(0, missing), succeeded=succeeded, failed=failed, over=over)

    async def _tell(self, job: Job, *, active: int, succeeded: int, failed: int, over: bool) -> None:
        old = job.status
        if (old.active, old.succeeded, old.failed) == (active, succeeded, failed) and not over:
            return
        now = print_time(self._clock.now())
        status: Json = {"active": active, "succeeded": succeeded, "failed": failed}
        if old.start_time is None:
            status["startTime"] = now
        if over:
            status["completionTime"] = now
            status["conditions"] = [
                {"type": kind, "status": "True", "lastTransitionTime": now, "lastProbeTime": now}
                for kind in ("SuccessCriteriaMet", "Complete")
            ]
        meta = job.metadata
        with contextlib.suppress(NotFound):
            await self._api.patch(
                JOB, meta.name, {"status": status}, namespace=meta.namespace, subresource="status", uid=meta.uid
            )


def _is_over(job: Job) -> bool:
    return any(each.type in {"Complete", "Failed"} and each.status == "True" for each in job.status.conditions)


def _active(pod: Pod) -> bool:
    return pod.status.phase not in {"Succeeded", "Failed"} and pod.metadata.deletion_timestamp is None
