"""Who we are to an API server, and how that is kept fresh.

A source is asked before every call and answers from memory until what it holds is old: files are read again after a
minute, because kubelets rotate a pod's token under its path; what a plugin gave is kept until it expires. A 401 makes
the client call `forget`, and the next answer is a fresh one.

Nothing here puts a secret into a message: neither a token, nor a key, nor what a plugin printed.
"""

import asyncio
import base64
import dataclasses
import datetime as dt
import pathlib
import re
from collections.abc import Mapping
from typing import Any, Final, Protocol

import msgspec

from growth.kube.errors import ConfigError

# The kubelet renews a projected token when 80 % of its life (ten minutes at the least) are over; a minute is well
# within what is left.
FILES_ARE_READ_AGAIN_AFTER: Final = dt.timedelta(seconds=60)
# Clocks differ and calls take a while: what is about to expire is replaced before it does.
EXPIRY_MARGIN: Final = dt.timedelta(seconds=30)
# A plugin may open a browser and wait for a person.
PLUGIN_DEADLINE_SECONDS: Final = 300.0


@dataclasses.dataclass(frozen=True, slots=True)
class Identity:
    """What goes to the server: the Authorization header's value, and a client certificate with its key, as PEM."""

    authorization: str = dataclasses.field(default="", repr=False)
    certificate: bytes = dataclasses.field(default=b"", repr=False)
    key: bytes = dataclasses.field(default=b"", repr=False)


class Credentials(Protocol):
    """A source of identities. `ConfigError` where none can be had."""

    async def current(self, now: dt.datetime) -> Identity:
        """The identity to use at `now`; from memory where that is young enough."""

    def forget(self) -> None:
        """The server refused what we sent: the next `current` reads afresh."""


@dataclasses.dataclass(frozen=True, slots=True)
class Pem:
    """A certificate or key: in a file that is read when needed, or at hand."""

    path: pathlib.Path | None = None
    data: bytes = dataclasses.field(default=b"", repr=False)

    def read(self, what: str) -> bytes:
        return self.data if self.path is None else read_file(self.path, what)


def read_file(path: pathlib.Path, what: str) -> bytes:
    """The file's bytes; a file that cannot be read is a `ConfigError` that names it."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{what} {path} cannot be read: {error.strerror or type(error).__name__}") from error


class FileCredentials:
    """A token, a password or a client certificate, written down or in files. In a pod: the service account's token."""

    def __init__(
        self,
        *,
        authorization: str = "",
        token_file: pathlib.Path | None = None,
        certificate: Pem | None = None,
        key: Pem | None = None,
    ) -> None:
        self._authorization = authorization
        self._token_file = token_file
        self._certificate = certificate
        self._key = key
        self._identity: Identity | None = None
        self._read_at = dt.datetime.min.replace(tzinfo=dt.UTC)

    async def current(self, now: dt.datetime) -> Identity:
        if self._identity is None or now - self._read_at >= FILES_ARE_READ_AGAIN_AFTER:
            self._identity = self._read()
            self._read_at = now
        return self._identity

    def forget(self) -> None:
        self._identity = None

    def _read(self) -> Identity:
        authorization = self._authorization
        if self._token_file is not None:
            token = read_file(self._token_file, "the token file").decode("utf-8", "replace").strip()
            if not token:
                raise ConfigError(f"the token file {self._token_file} is empty: whoever writes it has to write a token")
            authorization = f"Bearer {token}"
        return Identity(
            authorization=authorization,
            certificate=self._certificate.read("the client certificate") if self._certificate else b"",
            key=self._key.read("the client key") if self._key else b"",
        )


class _ExecStatus(msgspec.Struct, rename="camel"):
    token: str = ""
    expiration_timestamp: dt.datetime | None = None
    client_certificate_data: str = ""
    client_key_data: str = ""


class ExecCredentials:
    """What a kubeconfig's `exec` plugin gives. The plugin runs again when its answer expires or was refused."""

    def __init__(self, spec: Mapping[str, Any], *, origin: str) -> None:
        self._spec = spec
        self._plugin = f"the exec plugin {str(spec.get('command'))!r} of {origin}"
        self._identity: Identity | None = None
        self._expires: dt.datetime | None = None
        self._running = asyncio.Lock()

    async def current(self, now: dt.datetime) -> Identity:
        async with self._running:
            if self._identity is None or (self._expires is not None and now >= self._expires - EXPIRY_MARGIN):
                status = await self._run()
                self._identity = self._identity_of(status)
                self._expires = status.expiration_timestamp
            return self._identity

    def forget(self) -> None:
        self._identity = None

    def _identity_of(self, status: _ExecStatus) -> Identity:
        if not status.token and not (status.client_certificate_data and status.client_key_data):
            raise ConfigError(f"{self._plugin} gave neither a token nor a client certificate with its key")
        return Identity(
            authorization=f"Bearer {status.token}" if status.token else "",
            certificate=status.client_certificate_data.encode(),
            key=status.client_key_data.encode(),
        )

    async def _run(self) -> _ExecStatus:
        # Two seconds of imports: paid only by those whose kubeconfig names a plugin.
        from kubernetes_asyncio.config import ConfigException  # noqa: PLC0415
        from kubernetes_asyncio.config.exec_provider import ExecProvider  # noqa: PLC0415
        from kubernetes_asyncio.config.kube_config import ConfigNode  # noqa: PLC0415

        try:
            provider = ExecProvider(ConfigNode("exec", dict(self._spec)))
        except (ConfigException, TypeError, KeyError) as error:
            raise ConfigError(f"{self._plugin} is not well described: it needs command and apiVersion") from error
        try:
            async with asyncio.timeout(PLUGIN_DEADLINE_SECONDS):
                answer = await provider.run()
        except FileNotFoundError as error:
            hint = str(self._spec.get("installHint") or "").strip().split("\n")[0]
            advice = hint or "install it, put it on PATH, or choose another context"
            raise ConfigError(f"{self._plugin} was not found: {advice}") from error
        except TimeoutError as error:
            raise ConfigError(f"{self._plugin} did not end within {PLUGIN_DEADLINE_SECONDS:.0f} s") from error
        except OSError as error:
            raise ConfigError(f"{self._plugin} cannot be run: {error.strerror or type(error).__name__}") from error
        except ConfigException as error:
            # The message holds what the plugin printed, and that may be a token: only the exit code is ours to show.
            code = re.match(r"exec: process returned (-?\d+)", str(error))
            said = f"failed with exit code {code[1]}" if code else "did not answer with an ExecCredential"
            raise ConfigError(f"{self._plugin} {said}: run it by hand to see why") from None
        try:
            return msgspec.convert(answer, _ExecStatus)
        except msgspec.ValidationError:
            raise ConfigError(f"{self._plugin} answered with an ExecCredential whose status is not valid") from None


class ProviderCredentials:
    """A kubeconfig's old `auth-provider` (oidc, gcp), left to kubernetes-asyncio, which also writes back what it renews."""

    def __init__(self, *, paths: str, context: str, origin: str) -> None:
        self._paths = paths
        self._context = context
        self._origin = origin
        self._identity: Identity | None = None
        self._read_at = dt.datetime.min.replace(tzinfo=dt.UTC)

    async def current(self, now: dt.datetime) -> Identity:
        if self._identity is None or now - self._read_at >= FILES_ARE_READ_AGAIN_AFTER:
            self._identity = await self._load()
            self._read_at = now
        return self._identity

    def forget(self) -> None:
        self._identity = None

    async def _load(self) -> Identity:
        from kubernetes_asyncio.client import Configuration  # noqa: PLC0415
        from kubernetes_asyncio.config import load_kube_config  # noqa: PLC0415

        configuration = Configuration()
        try:
            async with asyncio.timeout(PLUGIN_DEADLINE_SECONDS):
                await load_kube_config(
                    config_file=self._paths, context=self._context, client_configuration=configuration
                )
        except Exception as error:  # noqa: BLE001 - the library raises whatever it meets, and its texts may hold tokens
            raise ConfigError(
                f"the auth-provider of {self._origin} failed ({type(error).__name__}): log in again, or use an exec plugin"
            ) from None
        return Identity(authorization=str(configuration.api_key.get("BearerToken") or ""))


def basic(username: str, password: str) -> str:
    """The Authorization header's value for a user name and a password."""
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()
