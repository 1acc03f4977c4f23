"""The clouds that can be chosen, made from the settings."""

import pathlib

from growth.api import names
from growth.api.instance_types import Catalogue
from growth.kube.api import Api
from growth.operator.settings import ProcessSettings, SettingError, Settings
from growth.operator.wiring import Cloud, MakeCloud
from growth.ports import Clock, Random
from growth.providers.catalogues import builtin, currency_of
from growth.providers.catalogues.file import CatalogueError, load
from growth.providers.kwok.faults import FaultBook
from growth.providers.kwok.kubelets import QUICK_KUBELETS, Kubelets
from growth.providers.kwok.provider import KwokProvider
from growth.providers.kwok.registrar import Registrar, RegistrarSettings


def chosen(settings: Settings, *, clock: Clock, random: Random) -> MakeCloud:
    """The cloud that `--provider` names. `SettingError` where there is none, or its catalogue cannot be read."""
    match settings.process.provider:
        case "kwok":
            return _kwok(settings, catalogue=kwok_catalogue(settings.process), clock=clock, random=random)
        case "":
            raise SettingError("--provider is missing: say where machines are bought, with --provider kwok")
        case other:
            raise SettingError(
                f"--provider: {other} cannot be run yet: use --provider kwok, with --kwok-catalogue {other}"
            )


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

    def make(api: Api, *, cluster: str) -> Cloud:
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
