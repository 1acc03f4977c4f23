"""Hetzner's cloud in the simulated world: the fake of its API, and a record of each machine of the cluster."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Final

from growth.api import names
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.api.nodeclasses import HETZNER_NODE_CLASS
from growth.kube.errors import NotFound
from growth.providers.catalogues.hetzner import CPU_KEPT, CSI_LOCATION_LABEL, HOURS_BILLED, PODS
from growth.providers.kwok.faults import NoCapacity
from growth.providers.kwok.records import Record, State
from growth.sim.clouds.hetzner import FakeSettings, Faults, HetznerFake, Times
from growth.sim.clouds.hetzner.objects import Server
from growth.sim.clouds.hetzner.servers import LATE_CODES
from growth.sim.clouds.hetzner.wire import Refusal
from growth.sim.ports import SimClock, SimRandom
from growth.sim.seams import Step
from growth.sim.world.cloud_controller import CloudControllerSettings, uninitialized
from growth.sim.world.half import CLOUD, CONFIG_MAPS, NEVER_SECONDS, Half, of_the_way, sold_out
from growth.sim.world.hetzner_classes import NETWORK
from growth.sim.world.recording import LONG_AFTER, Ground, at_once, record_of, taints_of
from growth.units import print_micro_time

ENDPOINT: Final = "https://hetzner.test/v1"
TOKEN: Final = "Zk4vT9wQxB7nLr2mHc8JpYd5GsF3uEaR"  # noqa: S105 - of no account
NAME: Final = "hetzner"
CLUSTER_LABEL: Final = "growth.dev/cluster"
CLAIM_UID_LABEL: Final = "growth.dev/claim-uid"
# What a kubelet leaves to pods of the memory that is advertised.
POD_PERCENT: Final = 91


class HetznerHalf(Half):
    """A machine gets its record when it is bought."""

    fake: HetznerFake

    def __init__(self, ground: Ground, *, controller: CloudControllerSettings | None = None) -> None:
        super().__init__(ground, name=NAME)
        self._controller = controller
        self.fake = HetznerFake(
            clock=SimClock(ground.kernel),
            random=SimRandom(ground.kernel.seed, NAME),
            settings=FakeSettings(times=Times(delete=(NEVER_SECONDS, NEVER_SECONDS)), tokens=frozenset({TOKEN})),
        )
        self.fake.add_network(
            {
                "name": NETWORK,
                "ip_range": "10.0.0.0/16",
                "subnets": [{"type": "cloud", "network_zone": "eu-central", "ip_range": "10.0.0.0/20"}],
            }
        )
        self.fake.project.told.append(self._told)

    def disturb(self, rates: Mapping[str, float]) -> None:
        super().disturb(rates)
        error = rates.get("cloud-error", 0.0)
        self.fake.faults = Faults(
            **of_the_way(rates),
            conflict=error / 2,
            unavailable=error,
            placement=error,
            late_failure=error,
            late_refusal=error / 4,
            stuck=error / 4,
        )

    def cost(self) -> int:
        books, now = self.fake.ledger, self.fake.project.now
        ours = [each for each in books.purchases if each.labels.get(CLUSTER_LABEL) == self.ground.cluster]
        return int(sum(each.cost(now) for each in ours) * 10**9)

    def reprice(self, factors: Mapping[str, float], prices: Mapping[str, int]) -> None:
        for name, nano in prices.items():
            monthly = nano * HOURS_BILLED * factors.get(name, 1.0) / 1e9
            self.fake.market.price(name, "*", f"{monthly:.2f}")

    def restock(self, short: Sequence[NoCapacity]) -> None:
        for kind in self.fake.market.types(self.fake.project.now):
            for location, offer in kind.offers.items():
                offer.stock = 0 if sold_out(short, kind.name, location) else None

    # What becomes of servers.

    def _told(self, what: str, server: Server) -> None:
        if server.labels.get(CLUSTER_LABEL) != self.ground.cluster:
            return
        match what:
            case "bought":
                self.records.add(server.id, self._record(server), by=self.acting)
            case "running":
                at = print_micro_time(self.fake.project.now + self.ground.boot)
                self.records.change(server.id, {"registersAt": at}, by=CLOUD)
            case "deleting":
                if server.running_since is None and self._failed(server):
                    self.spoiled(server.labels.get(CLAIM_UID_LABEL, ""))
                self.records.change(server.id, {"state": State.DELETING.value}, by=self.acting)
            case _:
                self.records.remove(server.id, by=CLOUD)

    def _failed(self, server: Server) -> bool:
        mine = ("server", server.id)
        return any(
            action.failed and mine in action.resources and action.error is not None and action.error[0] in LATE_CODES
            for action in self.fake.project.actions.values()
        )

    def _record(self, server: Server) -> Record:
        kind, claim = server.type, self._claim(server.name)
        record = record_of(
            claim=server.name,
            claim_uid=server.labels.get(CLAIM_UID_LABEL, ""),
            provider_id=f"hcloud://{server.id}",
            type_=kind.name,
            zone=server.location,
            arch="arm64" if kind.arm else "amd64",
            cpu=1000 * kind.cores,
            cpu_kept=CPU_KEPT,
            memory=int(kind.memory_gb * (1 << 30)),
            pod_percent=POD_PERCENT,
            disk=kind.disk_gb * 10**9,
            pods=self._pods(claim),
            taints=[
                {"key": names.UNREGISTERED_TAINT, "effect": "NoExecute"},
                *(() if claim is None else taints_of(claim)),
            ],
            registers_at=self.fake.project.now + LONG_AFTER,
            labels={CSI_LOCATION_LABEL: server.location},
        )
        return record if self._controller is None else uninitialized(record, self._controller)

    def _claim(self, name: str) -> NodeClaim | None:
        try:
            return at_once(self.ground.admin.get(NODE_CLAIM, name))
        except NotFound:
            return None

    def _pods(self, claim: NodeClaim | None) -> int:
        """As many as the class has its kubelets told."""
        if claim is not None:
            with contextlib.suppress(NotFound):
                found = at_once(self.ground.admin.get(HETZNER_NODE_CLASS, claim.spec.node_class_ref.name))
                return found.spec.max_pods or PODS
        return PODS

    # What others do.

    def see(self, step: Step) -> None:
        """Another cluster may have machines in the same project."""
        super().see(step)
        if step.which == CONFIG_MAPS and step.old is None and step.new is not None:
            cluster = step.new["metadata"].get("labels", {}).get(names.KWOK_MACHINE_LABEL)
            if cluster not in {None, self.ground.cluster}:
                self._foreign(step.key[1].removeprefix(names.KWOK_MACHINE_PREFIX), cluster)

    def _foreign(self, name: str, cluster: str) -> None:
        with contextlib.suppress(Refusal):
            self.fake.add_server(
                {"name": name, "server_type": "cx23", "image": "ubuntu-24.04", "labels": {CLUSTER_LABEL: cluster}}
            )
