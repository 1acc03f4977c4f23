"""Where a simulated world can be disturbed and where it can be watched: every opening between its parts, in one place.

`Seams` are for those who disturb: each method is given what is at an opening and answers with what is to be there
instead. `Witness` is for those who watch: it hands every change of the server's objects, with who made it, to listeners
at the moment when it happens, before anybody else can act on it.

    autoscaler's process ── connection ── network (rates) ── server_side ──┐
    the provider in it ── provider ───────────────────────────────────────┤ MemoryServer ── Witness ── listeners
    scheduler, controllers, kubelets, cloud ── part ──────────────────────┘
"""

import dataclasses
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from growth.api.kinds import Json, Kind
from growth.kube.api import Api, Page
from growth.kube.memory import MemoryApi, MemoryServer
from growth.kube.memory.store import Change
from growth.kube.passing import PassingApi, Write
from growth.operator.wiring import Role
from growth.providers.contract import CloudProvider
from growth.sim.effects import Effects
from growth.sim.kernel import Kernel
from growth.sim.network import GOOD, Faults

if TYPE_CHECKING:
    from growth.sim.world.half import Half

R = TypeVar("R")
T = TypeVar("T")


@dataclasses.dataclass(frozen=True, slots=True)
class Actor:
    """Who speaks to the server: a part of the world by its name, or one life of a replica of the autoscaler."""

    name: str
    process: str = ""
    """The life's identity, such as growth-a-3; empty for parts of the world."""
    role: Role | None = None

    @property
    def is_growth(self) -> bool:
        """Whether this is the autoscaler; its provider's calls (`Role.CLOUD`) are its own too."""
        return self.role is not None


NOBODY: Final = Actor("nobody")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One change of one object. `old` is None where it was added, `new` where it is gone. Neither may be changed.

    A request changes several objects where owners go: `verb` and `asked` (plural, namespace, name) say what it was.
    """

    number: int
    at: float
    revision: int
    actor: Actor
    verb: str
    asked: tuple[str, str, str]
    which: tuple[str, str]
    """Group and plural."""
    key: tuple[str, str]
    old: Json | None
    new: Json | None
    last: Json
    """The object as of this change, its final state where it is gone."""

    @property
    def direct(self) -> bool:
        """Whether the request named this very object, or made it."""
        return self.asked[:2] == (self.which[1], self.key[0]) and self.asked[2] in {self.key[1], ""}


Listener = Callable[[Step], None]


class Seams:
    """What is put at the openings; this one leaves all of them as they are."""

    def connection(self, api: Api, actor: Actor) -> Api:
        """Inside the autoscaler's process, before the network: what its code is handed."""
        del actor
        return api

    def network(self, actor: Actor) -> Faults:
        """The rates of a new connection; they may be exchanged later at `NetworkApi.faults`."""
        del actor
        return GOOD

    def server_side(self, api: Api, actor: Actor) -> Api:
        """Behind the network, where requests arrive; must wait for nothing."""
        del actor
        return api

    def provider(self, provider: CloudProvider, actor: Actor) -> CloudProvider:
        """The cloud as the autoscaler's code sees it."""
        del actor
        return provider

    def cloud(self, half: "Half") -> None:
        """The vendor's half of a cloud that is reached by its API, before anybody asks it anything."""

    def part(self, api: Api, actor: Actor) -> Api:
        """The API of a part of the world: scheduler, workloads, budgets, nodes, kubelets, cloud, load, admin."""
        del actor
        return api


PLAIN: Final = Seams()


class Witness:
    """Follows one server. `listeners` are called in order with every change, in the order of revisions."""

    def __init__(self, kernel: Kernel, server: MemoryServer) -> None:
        self.listeners: list[Listener] = []
        self.steps = 0
        self.effects = Effects()
        self._kernel = kernel
        self._server = server
        self._actor = NOBODY
        self._verb = ""
        self._asked = ("", "", "")
        server.follow(self._changed)

    def api(self, actor: Actor, *, user: str) -> Api:
        """The server as this actor uses it."""
        return _Witnessed(self, self._server, actor, user=user)

    def begin(self, actor: Actor, verb: str, asked: tuple[str, str, str]) -> None:
        """A request that writes is about to be performed, all at once."""
        self.note(actor, verb, asked)
        self._actor, self._verb, self._asked = actor, verb, asked

    def note(self, actor: Actor, verb: str, asked: tuple[str, str, str]) -> None:
        """A request has arrived that is an effect, if it is the autoscaler's."""
        if actor.is_growth:
            self.effects.request(self._kernel.time(), actor.process, verb, *asked)

    def end(self) -> None:
        self._actor, self._verb, self._asked = NOBODY, "", ("", "", "")

    def _changed(self, which: tuple[str, str], change: Change) -> None:
        self.steps += 1
        step = Step(
            number=self.steps,
            at=self._kernel.time(),
            revision=change.revision,
            actor=self._actor,
            verb=self._verb,
            asked=self._asked,
            which=which,
            key=change.key,
            old=None if change.previous is None else change.previous.object,
            new=None if change.type == "DELETED" else change.stored.object,
            last=change.stored.object,
        )
        self.effects.change(step)
        for listener in self.listeners:
            listener(step)


class _Witnessed(PassingApi):
    """Calls of a `MemoryApi` wait for nothing, so whatever changes during one was changed by it."""

    def __init__(self, witness: Witness, server: MemoryServer, actor: Actor, *, user: str) -> None:
        super().__init__(MemoryApi(server, user=user))
        self._witness = witness
        self._actor = actor

    async def get(self, kind: Kind[T], name: str, *, namespace: str = "") -> T:
        self._note_read("get", kind, namespace, name)
        return await super().get(kind, name, namespace=namespace)

    async def list(self, kind: Kind[T], *, namespace: str = "", **options: Any) -> Page[T]:
        self._note_read("list", kind, namespace)
        return await super().list(kind, namespace=namespace, **options)

    def _note_read(self, verb: str, kind: Kind[Any], namespace: str, name: str = "") -> None:
        """What a cloud's provider reads are calls of a cloud that keeps its machines in the cluster."""
        if self._actor.role is Role.CLOUD:
            self._witness.note(self._actor, verb, (kind.plural, namespace, name))

    async def _write(self, write: Write, send: Callable[[], Awaitable[R]]) -> R:
        namespace = write.namespace if write.kind.namespaced else ""
        self._witness.begin(self._actor, write.verb, (write.kind.plural, namespace, write.name))
        try:
            return await send()
        finally:
            self._witness.end()
