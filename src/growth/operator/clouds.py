"""The clouds that can be chosen, made from the settings."""

import dataclasses
import pathlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

from growth.api import names
from growth.api.instance_types import Catalogue
from growth.kube.api import Api, Gate
from growth.operator.settings import ProcessSettings, SettingError, Settings
from growth.operator.wiring import Cloud, MakeCloud
from growth.ports import Clock, Random, Transport
from growth.providers.catalogues import builtin, currency_of
from growth.providers.catalogues.file import CatalogueError, load
from growth.providers.hetzner import client as hetzner_client
from growth.providers.hetzner import gauges as hetzner_gauges
from growth.providers.hetzner import keeper as hetzner_keeper
from growth.providers.hetzner import standin as hetzner_standin
from growth.providers.hetzner.client import HetznerApi
from growth.providers.hetzner.provider import HetznerProvider
from growth.providers.http import AioTransport, Client, EndpointError, KeptSecret, Secret, gauges
from growth.providers.http.aio import check_endpoint
from growth.providers.kwok.faults import FaultBook
from growth.providers.kwok.kubelets import QUICK_KUBELETS, Kubelets
from growth.providers.kwok.provider import KwokProvider
from growth.providers.kwok.registrar import Registrar, RegistrarSettings
from growth.providers.linode import client as linode_client
from growth.providers.linode import gauges as linode_gauges
from growth.providers.linode import keeper as linode_keeper
from growth.providers.linode import standin as linode_standin
from growth.providers.linode.client import LinodeApi
from growth.providers.linode.provider import LinodeProvider
from growth.telemetry.metrics import Metrics

# Where the vendors' own tools look for it.
TOKEN_VARIABLES: Final = {"hetzner": "HCLOUD_TOKEN", "linode": "LINODE_TOKEN"}
TOKENS_OF: Final = {"hetzner": "Hetzner project", "linode": "Linode account"}
# A fake on this machine takes any.
NO_TOKEN: Final = "of-no-account"  # noqa: S105 - of no account
# Clouds that are reached over the network.
REMOTE: Final = frozenset({"hetzner", "linode"})
EMPTY: Final[Mapping[str, str]] = MappingProxyType({})


def chosen(
    settings: Settings,
    *,
    clock: Clock,
    random: Random,
    transport: Transport | None = None,
    environ: Mapping[str, str] = EMPTY,
    metrics: Metrics | None = None,
) -> MakeCloud:
    """The cloud that `--provider` names; those of `REMOTE` need a transport.

    `SettingError` where there is none, its catalogue cannot be read, or it cannot be reached as set.
    """
    match settings.process.provider:
        case "kwok":
            return _kwok(settings, catalogue=kwok_catalogue(settings.process), clock=clock, random=random)
        case "hetzner":
            remote = _remote(settings.process, hetzner_client.ENDPOINT, environ, transport=transport, metrics=metrics)
            if not remote.endpoint.endswith(urlsplit(hetzner_client.ENDPOINT).path):
                raise SettingError(
                    f"--api-endpoint: {remote.endpoint} names no version of Hetzner's API: it must end in /v1, such as"
                    f" {hetzner_client.ENDPOINT}"
                )
            return _hetzner(settings, remote, clock=clock, random=random)
        case "linode":
            remote = _remote(settings.process, linode_client.ENDPOINT, environ, transport=transport, metrics=metrics)
            return _linode(settings, remote, clock=clock, random=random)
        case "":
            raise SettingError("--provider is missing: say where machines are bought, with --provider kwok")
        case other:
            raise SettingError(f"--provider: {other} is no cloud: use kwok, hetzner or linode")


def kwok_catalogue(process: ProcessSettings) -> Catalogue:
    """What the simulated machines are: a built-in list, or a file."""
    if not process.instance_types:
        return builtin(process.kwok_catalogue, dedicated=True)
    try:
        cloud = process.kwok_catalogue
        return load(pathlib.Path(process.instance_types), cloud=cloud, currency=currency_of(cloud))
    except CatalogueError as error:
        raise SettingError(f"--instance-types: {error}") from error


def _kwok(settings: Settings, *, catalogue: Catalogue, clock: Clock, random: Random) -> MakeCloud:
    namespace, with_controller = settings.controllers.namespace, settings.process.kwok_controller

    def make(api: Api, *, cluster: str, gate: Gate) -> Cloud:  # noqa: ARG001 - it writes through `api` alone
        faults = FaultBook(api, namespace=namespace, clock=clock)
        provider = KwokProvider(
            api,
            catalogue=catalogue,
            cluster=cluster,
            namespace=namespace,
            clock=clock,
            random=random,
            faults=faults,
            refused_seconds=settings.controllers.refused_ttl,
        )
        registrar = Registrar(
            api,
            cluster=cluster,
            namespace=namespace,
            clock=clock,
            random=random,
            faults=faults,
            settings=RegistrarSettings(kwok_controller=with_controller),
        )
        if with_controller:
            return Cloud(provider, (registrar,))
        mine = f"{names.KWOK_MACHINE_LABEL}={cluster}"
        kubelets = Kubelets(api, clock=clock, random=random, settings=QUICK_KUBELETS, labels=mine)
        return Cloud(provider, (registrar, kubelets))

    return make


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Remote:
    """A vendor's API as this process reaches it. `fake`: it is one on this machine."""

    endpoint: str
    fake: bool
    token: Secret
    transport: Transport
    metrics: Metrics | None

    def behind(self, gate: Gate) -> Transport:
        """Real connections are waited for inside of the transport: it asks the gate itself when it has one."""
        return self.transport.behind(gate) if isinstance(self.transport, AioTransport) else self.transport

    def count(self, client: Client, *, provider: str) -> None:
        if self.metrics is not None:
            gauges.declare(self.metrics, client, provider=provider)


def _remote(
    process: ProcessSettings,
    vendors: str,
    environ: Mapping[str, str],
    *,
    transport: Transport | None,
    metrics: Metrics | None,
) -> _Remote:
    assert transport is not None, "a cloud on the network needs a transport"
    endpoint, fake = _endpoint(process, vendors)
    token = _token(process, environ, needed=not fake)
    return _Remote(endpoint=endpoint, fake=fake, token=token, transport=transport, metrics=metrics)


def _hetzner(settings: Settings, remote: _Remote, *, clock: Clock, random: Random) -> MakeCloud:
    def make(api: Api, *, cluster: str, gate: Gate) -> Cloud:
        client = Client(
            hetzner_client.DIALECT,
            endpoint=remote.endpoint,
            token=remote.token,
            transport=remote.behind(gate),
            clock=clock,
            random=random,
            gate=gate,
        )
        remote.count(client, provider=settings.process.provider)
        cloud = HetznerApi(client)
        provider = HetznerProvider(
            api,
            cloud,
            cluster=cluster,
            namespace=settings.controllers.namespace,
            clock=clock,
            random=random,
            refused_seconds=settings.controllers.refused_ttl,
        )
        if remote.metrics is not None:
            hetzner_gauges.declare(remote.metrics, provider)
        keeper = hetzner_keeper.Keeper(api, provider, clock=clock, random=random)
        if not remote.fake:
            return Cloud(provider, (keeper,))
        stand_in = hetzner_standin.StandIn(api, cloud, provider, cluster=cluster)
        kubelets = Kubelets(api, clock=clock, random=random, settings=QUICK_KUBELETS, labels=stand_in.selector)
        return Cloud(provider, (keeper, stand_in, kubelets))

    return make


def _linode(settings: Settings, remote: _Remote, *, clock: Clock, random: Random) -> MakeCloud:
    process = settings.process
    if bool(process.linode_cluster) == bool(process.linode_region):
        raise SettingError(
            "--linode-cluster says how the LKE cluster is called at Linode, --linode-region where to buy instances that are no"
            " nodes of LKE: give one of them"
        )
    if process.linode_cluster and process.lke_orphan_ttl < 2 * process.lke_create_timeout:
        raise SettingError(
            f"--lke-orphan-ttl {process.lke_orphan_ttl:g}s is less than twice --lke-create-timeout"
            f" {process.lke_create_timeout:g}s: what a purchase still waits for would be removed, and bought again"
        )

    def make(api: Api, *, cluster: str, gate: Gate) -> Cloud:
        cloud = LinodeApi(
            endpoint=remote.endpoint,
            token=remote.token,
            transport=remote.behind(gate),
            clock=clock,
            random=random,
            gate=gate,
        )
        remote.count(cloud.lists, provider=process.provider)
        provider = LinodeProvider(
            api,
            cloud,
            cluster=cluster,
            lke_cluster=process.linode_cluster,
            region=process.linode_region,
            namespace=settings.controllers.namespace,
            clock=clock,
            random=random,
            refused_seconds=settings.controllers.refused_ttl,
            create_seconds=process.lke_create_timeout,
            orphan_seconds=process.lke_orphan_ttl,
            few=settings.controllers.collection_few,
            share=settings.controllers.collection_share,
        )
        if remote.metrics is not None and process.linode_cluster:
            linode_gauges.declare(remote.metrics, provider)
        keeper = linode_keeper.Keeper(api, cloud, provider, clock=clock, random=random)
        if not remote.fake:
            return Cloud(provider, (keeper,))
        stand_in = linode_standin.StandIn(api, provider, cluster=cluster, clock=clock)
        kubelets = Kubelets(api, clock=clock, random=random, settings=QUICK_KUBELETS, labels=stand_in.selector)
        return Cloud(provider, (keeper, stand_in, kubelets))

    return make


def _endpoint(process: ProcessSettings, vendors: str) -> tuple[str, bool]:
    """The API's address, and whether it is a fake on this machine."""
    try:
        endpoint = check_endpoint(process.api_endpoint or vendors)
    except EndpointError as error:
        raise SettingError(f"--api-endpoint: {error}") from None
    return endpoint, urlsplit(endpoint).scheme == "http"


def _token(process: ProcessSettings, environ: Mapping[str, str], *, needed: bool) -> Secret:
    """From the file, else from the environment. No message says what it is."""
    variable = TOKEN_VARIABLES[process.provider]
    where = f"variable {variable}"
    text, file = environ.get(variable, ""), None
    if process.token_file:
        where = f"--token-file: {process.token_file}"
        file = pathlib.Path(process.token_file)
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            problem = error.strerror if isinstance(error, OSError) else "it is no text"
            raise SettingError(f"{where} cannot be read: {problem}") from None
    if not text.strip() and not needed:
        return Secret(NO_TOKEN)
    if not text.strip():
        raise SettingError(
            f"the token of the {TOKENS_OF[process.provider]} is missing: put it into {variable}, or name its file with"
            " --token-file"
        )
    try:
        return Secret(text) if file is None else KeptSecret(text, read=lambda: _read_again(file))
    except ValueError:
        raise SettingError(f"{where} holds no token; a token is one line of letters and digits") from None


def _read_again(file: pathlib.Path) -> str | None:
    """None while it cannot be read: whoever exchanges it may be at it."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
