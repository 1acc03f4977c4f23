"""Opens a world for each law on each backend, runs the law, and counts the laws that hold.

Backends: `http` is `HttpApi` on a real kube-apiserver, `memory` is `MemoryApi`, `memory-http` is `HttpApi` on the server
in process. The real server is shared by the laws of one process; a server in process is made for each law.
"""

import asyncio
import contextlib
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import aiohttp
import pytest

from growth.kube import access
from growth.kube.api import Api
from growth.kube.http import HttpApi
from growth.kube.memory import MemoryApi, MemoryServer
from growth.kube.memory.serve import serving
from growth.ports import SystemClock, SystemRandom
from tests.conformance.kinds import NAMESPACE
from tests.conformance.world import FREE, Backend, World
from tools.controlplane.plane import Plane
from tools.controlplane.plane import plane as start_plane

HTTP = pytest.param("http", marks=pytest.mark.plane)
BACKENDS = [HTTP, "memory", "memory-http"]
WIRE_BACKENDS = [HTTP, "memory-http"]


@pytest.fixture(scope="session")
def real_backend(control_plane: None) -> Iterator[Backend]:
    """One API server for all laws of this process."""
    with start_plane() as running:
        yield _real(running)


@pytest.fixture(scope="session")
def real_forgetful_backend(control_plane: None) -> Iterator[Backend]:
    """An API server that keeps no history of its own, so that what etcd forgets is forgotten."""
    with start_plane(apiserver_flags=("--watch-cache=false",)) as running:
        yield _real(running)


@pytest.fixture(scope="session")
def real_plane_backend(control_plane: None) -> Iterator[Backend]:
    """An API server with its controllers, for laws that controllers carry out."""
    with start_plane(controller_manager=True) as running:
        backend = _real(running)

        async def invent() -> None:  # early, because controllers take their time to notice
            async with backend.connect() as api:
                await backend.kind(api, FREE)

        asyncio.run(invent())
        yield backend


def _real(running: Plane) -> Backend:
    def connect() -> AbstractAsyncContextManager[HttpApi]:
        return _client(access.find(kubeconfig=str(running.kubeconfig)))

    async def compact(api: HttpApi) -> None:
        newest = (await api.list(NAMESPACE, limit=1)).revision
        body = {"revision": newest, "physical": True}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{running.etcd_url}/v3/kv/compaction", json=body) as answer,
        ):
            assert answer.status == 200, await answer.text()

    return Backend(connect=connect, compact=compact, shared=True)


def _memory(*, over_http: bool) -> Backend:
    server = MemoryServer(SystemClock(), SystemRandom())

    @contextlib.asynccontextmanager
    async def connect() -> AsyncIterator[Api]:
        if not over_http:
            yield MemoryApi(server, user="laws")
            return
        async with serving(server) as url, _client(access.direct(url, token="laws")) as api:
            yield api

    async def compact(_: Api) -> None:
        server.compact()

    return Backend(connect=connect, compact=compact, shared=False)


def _client(found: access.Access) -> AbstractAsyncContextManager[HttpApi]:
    return HttpApi.connect(found, clock=SystemClock(), user_agent="growth/laws", qps=1000, burst=1000)


def _backend(request: pytest.FixtureRequest, *, real: str) -> Backend:
    request.node.user_properties.append(("backend", request.param))
    if request.param != "http":
        return _memory(over_http=request.param == "memory-http")
    backend: Backend = request.getfixturevalue(real)
    return backend


@pytest.fixture(params=BACKENDS)
def world(request: pytest.FixtureRequest) -> World:
    """A world on an API server, whichever."""
    return World(_backend(request, real="real_backend"))


@pytest.fixture(params=WIRE_BACKENDS)
def wire(request: pytest.FixtureRequest) -> World:
    """A world behind HTTP, for laws of paths and media types."""
    return World(_backend(request, real="real_backend"))


@pytest.fixture(params=BACKENDS)
def forgetful(request: pytest.FixtureRequest) -> World:
    """A world whose history can be cut, for laws of what is gone."""
    return World(_backend(request, real="real_forgetful_backend"))


@pytest.fixture(params=BACKENDS)
def cluster(request: pytest.FixtureRequest) -> World:
    """A world whose controllers run, for laws of cascades."""
    return World(_backend(request, real="real_plane_backend"))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs a law inside its world."""
    function: Callable[..., Any] = pyfuncitem.obj
    if not inspect.iscoroutinefunction(function):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(function).parameters}
    (world,) = (value for value in arguments.values() if isinstance(value, World))

    async def law() -> None:
        async with world.open():
            await function(**arguments)

    asyncio.run(law())
    return True
