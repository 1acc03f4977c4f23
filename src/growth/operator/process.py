"""A real process around the autoscaler: connections, the port, signals, and how it ends.

SIGTERM and SIGINT stop it in good order: parts are cancelled, the Lease is given back. A lost Lease ends it on the spot,
because another replica may act from now on and nothing that is still under way here is worth waiting for.
"""

import asyncio
import contextlib
import os
import pathlib
import platform
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from typing import Final, NoReturn

from growth import __version__
from growth.kube import access
from growth.kube.access import SERVICE_ACCOUNT, Access
from growth.kube.api import Api, Gate
from growth.kube.describe import describe
from growth.kube.errors import ConfigError, GateClosed, KubeError
from growth.kube.http import DEADLINE_SECONDS, HttpApi
from growth.kube.lease import LeaseLost
from growth.operator import logs
from growth.operator.checks import Refused
from growth.operator.clouds import REMOTE, chosen
from growth.operator.metrics import Scrapes, new_metrics
from growth.operator.settings import Settings, unknown_variables
from growth.operator.wiring import Autoscaler, Connect, Openings, Role
from growth.ports import SystemClock, SystemRandom, ThreadCompute, Transport
from growth.providers.http import AioTransport
from growth.telemetry.logs import logger
from growth.web.health import serving

_log = logger("operator")

FAILED: Final = 1
# The elector needs one call every few seconds, and none of them may wait behind others.
ELECTOR_QPS: Final = 20.0
ELECTOR_BURST: Final = 20


def home(environ: Mapping[str, str], *, folder: pathlib.Path = SERVICE_ACCOUNT) -> str:
    """The namespace of the pod that we are; `growth` outside of one."""
    file = folder / "namespace"
    inside = bool(environ.get("KUBERNETES_SERVICE_HOST")) and file.exists()
    return (file.read_text().strip() if inside else "") or "growth"


async def run(settings: Settings, *, kubeconfig: str = "", context: str = "", environ: Mapping[str, str]) -> None:
    """Runs until a signal asks for the end. Raises what kept it from running; a lost Lease ends the process here."""
    async with contextlib.AsyncExitStack() as stack:
        transport: Transport | None = None
        if settings.process.provider in REMOTE:
            transport = await stack.enter_async_context(AioTransport.open(environ=environ))
        await _run(settings, kubeconfig=kubeconfig, context=context, environ=environ, transport=transport)


async def _run(
    settings: Settings, *, kubeconfig: str, context: str, environ: Mapping[str, str], transport: Transport | None
) -> None:
    clock, random = SystemClock(), SystemRandom()
    process = settings.process
    logs.configure(
        clock=clock,
        stream=sys.stderr,
        level=process.log_level,
        format=logs.Format(process.log_format) if process.log_format else None,
    )
    for told in unknown_variables(environ):
        _log.warning("variable ignored", problem=told)
    metrics = new_metrics()
    make_cloud = chosen(settings, clock=clock, random=random, transport=transport, environ=environ, metrics=metrics)
    way = access.find(kubeconfig=kubeconfig, context=context, environ=environ)
    cloud_way = access.find(kubeconfig=process.kwok_kubeconfig, environ=environ) if process.kwok_kubeconfig else way
    compute = ThreadCompute()
    autoscaler = Autoscaler(
        Openings(
            connect=_connections(way, cloud_way, settings=settings, clock=clock),
            cloud=make_cloud,
            clock=clock,
            random=random,
            compute=compute,
            metrics=metrics,
            identity=f"{platform.node() or 'growth'}_{random.uuid()}",
        ),
        settings,
    )
    try:
        async with contextlib.AsyncExitStack() as stack:
            port = await stack.enter_async_context(
                _served(process.listen, autoscaler, Scrapes(metrics, compute=compute))
            )
            _log.info(
                "starting",
                version=__version__,
                provider=process.provider,
                server=way.server,
                access=way.origin,
                cloud_access=cloud_way.origin,
                namespace=settings.controllers.namespace,
                port=port,
            )
            await _until_told(autoscaler)
    except (GateClosed, ConfigError):
        raise
    except KubeError as error:
        # Of two accesses we cannot tell here which one the error is about.
        raise Refused(describe(error, way if cloud_way is way else None)) from error
    finally:
        compute.close()


@contextlib.asynccontextmanager
async def _served(listen: tuple[str, int], autoscaler: Autoscaler, scrapes: Scrapes) -> AsyncIterator[int]:
    host, port = listen
    async with contextlib.AsyncExitStack() as stack:
        server = serving(host, port, unready=autoscaler.unready, metrics=scrapes.answer)
        try:
            taken = await stack.enter_async_context(server)
        except OSError as error:
            problem = os.strerror(error.errno).lower() if error.errno and error.errno > 0 else error.strerror
            raise Refused(
                f"--listen: {host}:{port} cannot be served: {problem}; choose another address, or port 0 for a free one"
            ) from error
        yield taken


async def _until_told(autoscaler: Autoscaler) -> None:
    loop = asyncio.get_running_loop()
    running = asyncio.ensure_future(autoscaler.run(at_loss=_end))

    def stop(number: signal.Signals) -> None:
        _log.info("stopping", signal=number.name)
        running.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, number)
    try:
        await running
    except asyncio.CancelledError:
        _log.info("stopped")
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


def _end(error: LeaseLost) -> NoReturn:
    """At once: no handler, no thread and no connection is waited for."""
    _log.error("lease lost", error=str(error))
    sys.stderr.flush()
    os._exit(FAILED)


def _connections(way: Access, cloud_way: Access, *, settings: Settings, clock: SystemClock) -> Connect:
    process = settings.process

    @contextlib.asynccontextmanager
    async def connect(role: Role, gate: Gate) -> AsyncIterator[Api]:
        match role:
            case Role.ELECTOR:
                qps, burst, agent = ELECTOR_QPS, ELECTOR_BURST, "growth-elector"
            case Role.GROWTH:
                qps, burst, agent = float(process.kube_qps), process.kube_burst, "growth"
            case Role.CLOUD:
                qps, burst, agent = float(process.kwok_qps), process.kwok_burst, f"growth-{process.provider}"
        async with HttpApi.connect(
            cloud_way if role is Role.CLOUD else way,
            clock=clock,
            user_agent=f"{agent}/{__version__}",
            gate=gate,
            qps=qps,
            burst=burst,
            deadline_seconds=DEADLINE_SECONDS,
        ) as api:
            yield api

    return connect
