"""Strikes at the world itself: at processes, clocks, machines, kubelets and objects, by people and by misfortune.

Each is a coroutine that picks its victim among what there is and says whether it found one. What would not mend by itself
is mended later, or when the disturbances end.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from growth.api import names
from growth.api.coordination import LEASE
from growth.api.core import CONFIG_MAP
from growth.api.karpenter import NODE_CLAIM, NODE_POOL
from growth.api.kinds import Json
from growth.api.nodes import NODE
from growth.api.pods import POD
from growth.api.policy import POD_DISRUPTION_BUDGET
from growth.kube.errors import KubeError
from growth.operator.wiring import Role
from growth.sim.chaos.clouds import repriced
from growth.sim.invariants.books import CLAIMS, NODES, PODS, POOLS, Books, deleting, has_condition, node_of
from growth.sim.ports import SimClock, SimRandom
from growth.sim.replica import Replica
from growth.sim.world.world import NAMESPACE_OF_GROWTH, World

Later = Callable[[float, Callable[[], Awaitable[object]]], None]

OTHER_CLUSTER: Final = "0123456789abcdef"


class Hands:
    """What the strikes work with. `by_hand` takes the UIDs of claims whose machines were taken from them."""

    def __init__(
        self,
        world: World,
        books: Books,
        random: SimRandom,
        *,
        later: Later,
        by_hand: dict[str, str],
        stuck: dict[str, None],
        stock: dict[str, None],
        prices: dict[str, float],
    ) -> None:
        self.world = world
        self.books = books
        self.random = random
        self._later = later
        self._by_hand = by_hand
        self._stuck = stuck
        self._jumped: set[SimClock] = set()
        self._stock = stock
        self._prices = prices
        self._made = 0

    # Processes.

    def _alive(self) -> list[Replica]:
        return [
            each
            for each in self.world.replicas
            if each.process is not None and not each.process.dead and not each.process.frozen
        ]

    def _victim(self, random: SimRandom) -> Replica | None:
        """A replica that runs; mostly the one that leads."""
        alive = self._alive()
        leading = [each for each in alive if each.autoscaler is not None and each.autoscaler.leading]
        chosen = leading if leading and random.chance(0.8) else alive
        return random.choice(chosen) if chosen else None

    async def crash(self, random: SimRandom) -> bool:
        """At its next writes, or at whatever it waits for a blink later."""
        replica = self._victim(random)
        if replica is None or replica.process is None:
            return False
        process = replica.process
        if random.chance(0.5):
            process.crash_after_write(random.between(1, 6))
        else:
            self._later(random.uniform(0.0, 3.0), _async(process.crash))
        return True

    async def freeze(self, random: SimRandom) -> bool:
        replica = self._victim(random)
        if replica is None or replica.process is None:
            return False
        replica.process.freeze(random.uniform(1.0, 40.0))
        return True

    async def sleep(self, random: SimRandom) -> bool:
        """Of its clocks only the monotonic one stands still."""
        replica = self._victim(random)
        if replica is None:
            return False
        replica.sleep(random.uniform(1.0, 60.0))
        return True

    async def partition(self, random: SimRandom) -> bool:
        replica = self._victim(random)
        if replica is None:
            return False
        for network in replica.networks.values():
            network.partition()
            self._later(random.uniform(2.0, 40.0), _async(network.heal))
        return True

    async def two_leaders(self, random: SimRandom) -> bool:
        """Another replica takes the Lease, and its holder cannot know: it writes on until its renewal is too old.

        Either the Lease is emptied and nothing of it reaches the holder, or a hypervisor pauses the holder's machine, with all
        its clocks, until the Lease has run out, and it goes on where it was.
        """
        holder = next((each for each in self._alive() if each.autoscaler is not None and each.autoscaler.leading), None)
        if holder is None or holder.process is None:
            return False
        elector = holder.networks[Role.ELECTOR]
        elector.partition()
        asleep = 0.0
        if random.chance(0.5):
            body: Json = {"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}}
            await self.world.admin.patch(LEASE, names.LEADER_LEASE, body, namespace=NAMESPACE_OF_GROWTH)
        else:
            asleep = random.uniform(16.0, 25.0)
            holder.clock.stop()
            holder.process.freeze(asleep)
            self._later(asleep, _async(holder.clock.go))
        self._later(asleep + random.uniform(15.0, 30.0), _async(elector.heal))
        return True

    async def clock_jump(self, random: SimRandom) -> bool:
        """One at a time for each clock: two that add up would be wrong by more than a promise can bear."""
        replica = self._victim(random)
        if replica is None or replica.clock in self._jumped:
            return False
        seconds = random.choice((-600.0, -60.0, -5.0, 5.0, 60.0, 600.0))
        clock = replica.clock
        self._jumped.add(clock)
        clock.jump(seconds)

        def set_right() -> None:
            clock.jump(-seconds)
            self._jumped.discard(clock)

        self._later(random.uniform(30.0, 300.0), _async(set_right))
        return True

    # The cloud.

    async def delete_undone(self, random: SimRandom) -> bool:
        going = [each for each in self.books.all(CLAIMS) if deleting(each)]
        if not going:
            return False
        name = random.choice(going)["metadata"]["name"]
        self._stuck[name] = None
        self._later(random.uniform(60.0, 420.0), _async(lambda: self._stuck.pop(name, None)))
        return True

    async def stock_out(self, random: SimRandom) -> bool:
        kinds = sorted({each["data"]["instanceType"] for each in self.books.machines.values()})
        zones = {offering.zone for kind in self.world.settings.catalogue.types for offering in kind.offerings}
        zone = random.choice((*sorted(zones), "*"))
        pattern = f"{random.choice(kinds) if kinds else '*'}/{zone}/*"
        self._stock[pattern] = None
        self._later(random.uniform(20.0, 240.0), _async(lambda: self._stock.pop(pattern, None)))
        return True

    async def price_change(self, random: SimRandom) -> bool:
        for kind in self.world.settings.catalogue.types:
            if random.chance(0.3):
                self._prices[kind.name] = random.uniform(0.5, 1.5)
        for replica in self.world.replicas:
            if replica.provider is not None:
                replica.provider.sell(repriced(self.world.settings.catalogue, self._prices))
        if self.world.vendor is not None:
            listed = {kind.name: kind.offerings[0].price or 0 for kind in self.world.settings.catalogue.types}
            self.world.vendor.reprice(self._prices, listed)
        return True

    async def machine_vanishes(self, random: SimRandom) -> bool:
        if not self.books.machines:
            return False
        name = random.choice(sorted(self.books.machines))
        self._by_hand[self.books.machines[name]["data"]["claimUID"]] = "machine gone"
        await self.world.admin.delete(CONFIG_MAP, name, namespace=NAMESPACE_OF_GROWTH)
        return True

    # Kubelets.

    async def kubelet_flap(self, random: SimRandom) -> bool:
        nodes = sorted(each["metadata"]["name"] for each in self.books.all(NODES) if has_condition(each, "Ready"))
        if not nodes:
            return False
        name = random.choice(nodes)
        kubelets = self.world.cluster.kubelets
        kubelets.silence(name)
        self._later(random.uniform(30.0, 400.0), _async(lambda: kubelets.revive(name)))
        return True

    # People.

    async def pdb_zero(self, random: SimRandom) -> bool:
        apps = sorted(
            {
                each["metadata"].get("labels", {}).get("app", "")
                for each in self.books.all(PODS)
                if node_of(each) and each["metadata"]["namespace"] == "default"
            }
            - {""}
        )
        if not apps:
            return False
        self._made += 1
        name, app = f"zero-{self._made}", random.choice(apps)
        body: Json = {
            "metadata": {"name": name},
            "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": app}}},
        }
        await self.world.admin.create(POD_DISRUPTION_BUDGET, body, namespace="default")
        seconds = random.uniform(60.0, 420.0)
        self._later(
            seconds, lambda: self._quietly(self.world.admin.delete(POD_DISRUPTION_BUDGET, name, namespace="default"))
        )
        return True

    async def deleted_by_hand(self, random: SimRandom) -> bool:
        admin, books = self.world.admin, self.books
        match random.choice(("claim", "node", "pod")):
            case "claim" if claims := _names(books, CLAIMS):
                await admin.delete(NODE_CLAIM, random.choice(claims))
            case "node" if nodes := _names(books, NODES):
                await admin.delete(NODE, random.choice(nodes))
            case _:
                pods = sorted(key for key, each in books.objects[PODS].items() if key[0] == "default" and node_of(each))
                if not pods:
                    return False
                await admin.delete(POD, random.choice(pods)[1], namespace="default")
        return True

    async def finalizer_by_hand(self, random: SimRandom) -> bool:
        """Of a claim or Node that goes, where there is one: impatient people do that."""
        books = self.books
        claims = [each for each in books.all(CLAIMS) if each["metadata"].get("finalizers")]
        nodes = [
            each for each in books.all(NODES) if names.TERMINATION_FINALIZER in each["metadata"].get("finalizers", ())
        ]
        kind, those = (NODE_CLAIM, claims) if random.chance(0.5) else (NODE, nodes)
        those = [each for each in those if deleting(each)] or those
        if not those:
            return False
        victim = random.choice(sorted(those, key=lambda each: str(each["metadata"]["name"])))
        await self.world.admin.patch(kind, victim["metadata"]["name"], {"metadata": {"finalizers": None}})
        return True

    async def spec_change(self, random: SimRandom) -> bool:
        pools = _names(self.books, POOLS)
        if not pools:
            return False
        name = random.choice(pools)
        changes: tuple[Json, ...] = (
            {"spec": {"template": {"metadata": {"labels": {"edition": str(random.between(1, 9))}}}}},
            {"spec": {"disruption": {"consolidateAfter": f"{random.between(10, 90)}s"}}},
            {"spec": {"disruption": {"budgets": [{"nodes": random.choice(("20%", "50%", "100%", "3"))}]}}},
            {"spec": {"weight": random.between(1, 50)}},
            {"metadata": {"annotations": {names.PAUSED_ANNOTATION: "true"}}},
        )
        await self.world.admin.patch(NODE_POOL, name, random.choice(changes))
        unpaused: Json = {"metadata": {"annotations": {names.PAUSED_ANNOTATION: None}}}
        self._later(
            random.uniform(20.0, 120.0), lambda: self._quietly(self.world.admin.patch(NODE_POOL, name, unpaused))
        )
        return True

    async def foreign_node(self, random: SimRandom) -> bool:
        self._made += 1
        name = f"foreign-{self._made}"
        provider_id = random.choice((f"other://{name}", "", f"kwok://{name}"))
        spec: Json = {"taints": [{"key": "foreign", "effect": "NoSchedule"}]}
        if provider_id:
            spec["providerID"] = provider_id
        await self.world.admin.create(NODE, {"metadata": {"name": name, "labels": {"owner": "somebody"}}, "spec": spec})
        return True

    async def other_cluster(self, random: SimRandom) -> bool:
        """A machine of theirs beside ours; as likely as not under a name that one of our claims has."""
        self._made += 1
        claim = f"theirs-{self._made}"
        body: Json = {
            "metadata": {"name": f"kwok-{claim}", "labels": {names.KWOK_MACHINE_LABEL: OTHER_CLUSTER}},
            "data": {
                "claimUID": random.uuid(),
                "providerID": f"kwok://{claim}",
                "instanceType": "c-4x-amd64-linux",
                "zone": "test-zone-a",
                "capacityType": "on-demand",
                "state": "running",
            },
        }
        await self.world.admin.create(CONFIG_MAP, body, namespace=NAMESPACE_OF_GROWTH)
        return True

    async def _quietly(self, request: Awaitable[object]) -> None:
        try:
            await request
        except KubeError:
            return


def _names(books: Books, which: tuple[str, str]) -> list[str]:
    return sorted(str(each["metadata"]["name"]) for each in books.all(which))


def _async(act: Callable[[], object]) -> Callable[[], Awaitable[object]]:
    async def acting() -> object:
        return act()

    return acting


Strike = Callable[[Hands, SimRandom], Awaitable[bool]]

STRIKES: Final[Mapping[str, Strike]] = {
    "crash": Hands.crash,
    "freeze": Hands.freeze,
    "sleep": Hands.sleep,
    "partition": Hands.partition,
    "two-leaders": Hands.two_leaders,
    "clock-jump": Hands.clock_jump,
    "delete-undone": Hands.delete_undone,
    "stock-out": Hands.stock_out,
    "price-change": Hands.price_change,
    "machine-vanishes": Hands.machine_vanishes,
    "kubelet-flap": Hands.kubelet_flap,
    "pdb-zero": Hands.pdb_zero,
    "deleted-by-hand": Hands.deleted_by_hand,
    "finalizer-by-hand": Hands.finalizer_by_hand,
    "spec-change": Hands.spec_change,
    "foreign-node": Hands.foreign_node,
    "other-cluster": Hands.other_cluster,
}
