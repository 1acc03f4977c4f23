"""`kill -9` of the autoscaler at random moments of scale-up and scale-down on a real control plane: what is left?

A plane with kube-scheduler, kube-controller-manager and kwok's kubelets; a NodePool with `limits.nodes`; a Deployment that
is scaled up from nothing, to more than the limit allows, and down to nothing again, in turn. At a random moment of each
the process that leads is killed and started again at once. A witness watches every revision of claims, pools, machines
and Nodes and counts by itself; it shares nothing with the autoscaler. After each kill must come true: machines = claims
= Nodes, and every pod that fits under the limit runs, or nothing is left. At every revision: no limit exceeded,
reserved names included, no claim with a second machine, no claim gone before its machine.

`--replicas 2` runs two of them under a lease of some seconds and kills the one that holds it.
"""

import argparse
import contextlib
import random
import sys
import time
from collections.abc import Iterator
from typing import Any, Final

from bench.owning import autoscaler, desk
from bench.owning.autoscaler import Running
from bench.owning.desk import Desk
from bench.owning.witness import Witness
from growth.api.kinds import Json
from tools.controlplane.plane import Plane, plane

LIMIT: Final = 8
PODS_PER_MACHINE: Final = 7  # of one cpu on machines of eight, which keep a tenth of a cpu for themselves
MOST_PODS: Final = LIMIT * PODS_PER_MACHINE
# About as long as it takes from the wish to the last machine, and from the last pod to the last machine gone.
UP_SECONDS: Final = (0.5, 6.0)
DOWN_SECONDS: Final = (1.0, 12.0)
SETTLE_SECONDS: Final = 300.0
TOLD_EVERY: Final = 10  # kills: a long campaign says how far it is
# A short lease, so that the next life begins soon, and empty nodes go soon, so that scale-downs are under way too.
OPTIONS: Final = (
    *("--lease-duration", "4s", "--renew-deadline", "3s", "--retry-period", "1s"),
    *autoscaler.QUICK,
)
LEASE_LOST: Final = "lease lost"  # the last that such a process logs
LEASE: Final = "/apis/coordination.k8s.io/v1/namespaces/growth/leases/growth-leader-election"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--moments", type=int, default=200, help="how often the process is killed")
    parser.add_argument("--replicas", type=int, default=1, choices=(1, 2))
    parser.add_argument("--seed", type=int, default=1)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    return campaign(moments=options.moments, replicas=options.replicas, seed=options.seed)


def failed(result: dict[str, Any]) -> bool:
    return bool(result["broken"])


def campaign(*, moments: int, replicas: int, seed: int) -> dict[str, Any]:
    """One campaign on a plane of its own. `broken` says what did not hold; it is empty when everything did."""
    chance = random.Random(seed)
    with plane(scheduler=True, controller_manager=True, kwok=True) as running:
        server = Desk(running)
        autoscaler.prepare(server, autoscaler.GROWTH, node_class={"nodeRegistrationDelay": "1s"})
        server.create(desk.POOLS, _pool())
        server.create(desk.APPS, _deployment())
        witness = Witness(running)
        done = midway = 0
        broken = ""
        start = time.monotonic()
        with _replicas(running, replicas) as team:
            try:
                while done < moments:
                    midway += _moment(server, witness, team, chance, up=done % 2 == 0)
                    done += 1
                    if done % TOLD_EVERY == 0:
                        print(f"{done} of {moments} kills", file=sys.stderr, flush=True)
                if done % 2:
                    _settle(server, witness, team, 0)
            except (AssertionError, desk.Late, autoscaler.Died) as error:
                broken = f"after {done} kills: {error}"
        witness.stop()
        seen = witness.ledger.statistics()
        return {
            "moments": done,
            "with machines coming or going": midway,
            "replicas": replicas,
            "leases lost": team.leases_lost,
            "seed": seed,
            "bought": seen.bought,
            "most of the limit": f"{seen.most} of {LIMIT}",
            "revisions": seen.revisions,
            "seconds": time.monotonic() - start,
            "broken": broken,
        }


class Team:
    """The replicas; whoever is killed is started again at once."""

    def __init__(self, running: Plane, count: int) -> None:
        self._plane = running
        self._started = 0
        self.leases_lost = 0
        self.members = [self._start() for _ in range(count)]
        for each in self.members:
            each.wait_ready()

    def _start(self) -> Running:
        self._started += 1
        return autoscaler.growth(self._plane, *OPTIONS, number=self._started)

    def kill(self, holder: str) -> None:
        """Ends the one that holds the lease, or the first where nobody does."""
        index = next((number for number, each in enumerate(self.members) if each.holds(holder)), 0)
        self.members[index].kill()
        self.members[index] = self._start()

    def has(self, holder: str) -> bool:
        """Whether one of the living calls itself so."""
        return any(each.holds(holder) for each in self.members)

    def logs(self) -> str:
        return "\n".join(each.log[-1500:] for each in self.members)

    def check(self) -> None:
        """Whoever could not renew its lease in time has ended, as it must, and is started again, as a Deployment does; a
        machine too busy for so short a lease is no fault. Nobody may end in any other way.
        """
        for index, each in enumerate(self.members):
            if each.alive:
                continue
            if LEASE_LOST not in each.log:
                raise autoscaler.Died(f"a replica ended by itself; its log ends:\n{each.log[-3000:]}")
            self.leases_lost += 1
            self.members[index] = self._start()

    def stop(self) -> None:
        for each in self.members:
            each.stop()


@contextlib.contextmanager
def _replicas(running: Plane, count: int) -> Iterator[Team]:
    team = Team(running, count)
    try:
        yield team
    finally:
        team.stop()


def _moment(server: Desk, witness: Witness, team: Team, chance: random.Random, *, up: bool) -> bool:
    """Somebody leads; the workload changes; at some moment of what follows the leader is killed; then all must be well.

    Whether machines were coming or going at that moment.
    """

    def led() -> bool:
        team.check()
        return team.has(_holder(server))

    server.until(led, seconds=SETTLE_SECONDS, what="somebody leads", state=team.logs)
    wanted = chance.randint(PODS_PER_MACHINE, MOST_PODS + PODS_PER_MACHINE) if up else 0
    server.merge(f"{desk.APPS}/crowd", {"spec": {"replicas": wanted}})
    time.sleep(chance.uniform(*(UP_SECONDS if up else DOWN_SECONDS)))
    team.kill(_holder(server))
    unsettled = bool(witness.look().settled()) or witness.ledger.count()[0] not in {0, LIMIT}
    _settle(server, witness, team, wanted)
    return unsettled


def _settle(server: Desk, witness: Witness, team: Team, wanted: int) -> None:
    """Returns when machines = claims = Nodes and the pods that fit run; with no pods, when nothing is left."""
    fitting = min(wanted, MOST_PODS)

    def settled() -> bool:
        team.check()
        ledger = witness.look()
        assert not ledger.complaints, "; ".join(str(each) for each in ledger.complaints[:3])
        if ledger.settled() or (wanted == 0 and ledger.count() != (0, 0, 0)):
            return False
        return _running(server) == (fitting, wanted)

    def state() -> str:
        running, there = _running(server)
        ledger = witness.look()
        return f"{running} of {there} pods run, {ledger.count()} machines, claims, Nodes; {'; '.join(ledger.settled()[:5])}"

    server.until(settled, seconds=SETTLE_SECONDS, what="machines = claims = Nodes and all pods run", state=state)


def _running(server: Desk) -> tuple[int, int]:
    """Pods that run, and pods."""
    pods = server.items(desk.PODS)
    running = sum(
        pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"] for pod in pods
    )
    return running, len(pods)


def _holder(server: Desk) -> str:
    try:
        return str(server.get(LEASE)["spec"].get("holderIdentity", ""))
    except desk.Refused:
        return ""


def _pool() -> Json:
    wanted = [
        {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
        {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
        {"key": "karpenter.kwok.sh/instance-cpu", "operator": "In", "values": ["8"]},
    ]
    uses = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "default"},
        "spec": {
            "limits": {"nodes": str(LIMIT)},
            "template": {"spec": {"nodeClassRef": uses, "requirements": wanted, "expireAfter": "Never"}},
            "disruption": {
                "consolidationPolicy": "WhenEmpty",
                "consolidateAfter": "1s",
                "budgets": [{"nodes": "100%"}],
            },
        },
    }


def _deployment() -> Json:
    container = {"name": "main", "image": "example", "resources": {"requests": {"cpu": "1", "memory": "256Mi"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "crowd"},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "crowd"}},
            "template": {
                "metadata": {"labels": {"app": "crowd"}},
                "spec": {"containers": [container], "terminationGracePeriodSeconds": 1},
            },
        },
    }
