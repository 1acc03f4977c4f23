"""Where the API server is, whom it may trust and whom we say we are: from a kubeconfig or from a pod's service account.

Files are found and merged as kubectl does it: `--kubeconfig`, else the list in `KUBECONFIG`, else `~/.kube/config`; the
first file that names a thing wins; paths in a file are relative to that file. With no file at all the pod's service
account is used. We read the files ourselves so that each mistake gets one line (which file, what, what to do), and
because kubernetes-asyncio lets the last `current-context` win and resolves a user's files beside the cluster's; plugins
and auth-providers are left to it (`growth.kube.credentials`).
"""

import base64
import binascii
import dataclasses
import os
import pathlib
import ssl
import tempfile
import urllib.parse
from collections.abc import Mapping
from typing import Any, Final

import yaml

from growth.kube.credentials import (
    Credentials,
    ExecCredentials,
    FileCredentials,
    Identity,
    Pem,
    ProviderCredentials,
    basic,
    read_file,
)
from growth.kube.errors import ConfigError
from growth.kube.proxies import proxy_of

SERVICE_ACCOUNT: Final = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount")

_Entry = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Access:
    """Everything needed to talk to one server. `origin` says in a person's words where it was found."""

    server: str
    origin: str
    credentials: Credentials = dataclasses.field(repr=False)
    user: str = ""
    namespace: str = "default"
    ca: bytes = dataclasses.field(default=b"", repr=False)
    ca_origin: str = "the certificate authorities of this machine"
    verify: bool = True
    tls_server_name: str = ""
    proxy: str = dataclasses.field(default="", repr=False)
    impersonation: tuple[tuple[str, str], ...] = ()

    def tls(self, identity: Identity) -> ssl.SSLContext:
        """How to check the server's certificate and which one to show. `ConfigError` for one that is not PEM."""
        try:
            context = ssl.create_default_context(cadata=self.ca.decode("ascii") if self.ca else None)
        except (ssl.SSLError, UnicodeDecodeError, ValueError) as error:
            raise ConfigError(f"{self.ca_origin} holds no PEM certificate: {self.origin}") from error
        # Python 3.13 and later refuse, by default, cluster authorities without a key identifier; kubectl accepts them.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if identity.certificate:
            self._show(context, identity)
        return context

    def _show(self, context: ssl.SSLContext, identity: Identity) -> None:
        # OpenSSL's Python door takes files only; the directory is ours alone and gone when the context has read them.
        with tempfile.TemporaryDirectory(prefix="growth-") as folder:
            certificate, key = pathlib.Path(folder, "tls.crt"), pathlib.Path(folder, "tls.key")
            certificate.write_bytes(identity.certificate)
            key.touch(mode=0o600)
            key.write_bytes(identity.key)
            try:
                context.load_cert_chain(certificate, key)
            except (ssl.SSLError, OSError) as error:
                raise ConfigError(
                    f"the client certificate or key of {self.origin} is not PEM, or they do not belong together"
                ) from error


def direct(server: str, *, token: str = "", ca_file: str | os.PathLike[str] = "", origin: str = "") -> Access:
    """Access to a server whose address, token and authority are known, such as one that a test or a demo started."""
    ca = read_file(pathlib.Path(ca_file), "the CA file") if ca_file else b""
    return Access(
        server=_checked_server(server, origin or server),
        origin=origin or server,
        credentials=FileCredentials(authorization=f"Bearer {token}" if token else ""),
        ca=ca,
        ca_origin=f"the CA file {ca_file}" if ca_file else "the certificate authorities of this machine",
    )


def find(*, kubeconfig: str = "", context: str = "", environ: Mapping[str, str] | None = None) -> Access:
    """The access that a person or a pod means. Nothing is sent; an exec plugin runs only when the first call is made."""
    environ = os.environ if environ is None else environ
    listed = kubeconfig or environ.get("KUBECONFIG", "")
    if listed:
        paths = [pathlib.Path(part).expanduser() for part in listed.split(os.pathsep) if part]
        present = [path for path in paths if path.exists()]
        if not present or (kubeconfig and len(present) < len(paths)):
            missing = ", ".join(str(path) for path in paths if path not in present)
            source = "--kubeconfig" if kubeconfig else "KUBECONFIG"
            raise ConfigError(f"the kubeconfig {missing} does not exist: correct {source}")
        return _from_files(present, context=context, environ=environ)
    home = pathlib.Path(environ.get("HOME") or pathlib.Path.home())
    default = home / ".kube" / "config"
    if default.exists():
        return _from_files([default], context=context, environ=environ)
    if environ.get("KUBERNETES_SERVICE_HOST") and not context:
        return in_cluster(environ)
    raise ConfigError(
        f"no cluster is configured: there is no {default}, KUBECONFIG is not set and this is no pod; give --kubeconfig"
    )


def in_cluster(environ: Mapping[str, str], *, folder: pathlib.Path = SERVICE_ACCOUNT) -> Access:
    """A pod's access to its own cluster, by its service account. The token is read again while we run."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise ConfigError("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: this is no pod")
    token = folder / "token"
    if not token.exists():
        raise ConfigError(
            f"this pod has no service account token ({token}): set automountServiceAccountToken, or give --kubeconfig"
        )
    ca = folder / "ca.crt"
    namespace = folder / "namespace"
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return Access(
        server=server,
        origin="the pod's service account",
        credentials=FileCredentials(token_file=token),
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
        ca=read_file(ca, "the service account's CA file"),
        ca_origin=f"the CA file {ca}",
        proxy=proxy_of(server, environ),
    )


def _from_files(paths: list[pathlib.Path], *, context: str, environ: Mapping[str, str]) -> Access:
    merged = _Merged(paths)
    name = context or merged.current
    if not name:
        raise ConfigError(f"{merged.where} has no current-context: choose one with --context ({merged.choice()})")
    chosen = merged.named("context", name, advice=f"choose one with --context ({merged.choice()})")
    origin = f"context {name!r} of {merged.file_of('context', name)}"
    cluster_name, user_name = str(chosen.get("cluster") or ""), str(chosen.get("user") or "")
    if not cluster_name:
        raise ConfigError(f"{origin} names no cluster: add `cluster` to it")
    cluster = merged.named("cluster", cluster_name, advice=f"{origin} names it")
    base = merged.file_of("cluster", cluster_name).parent
    ca = _pem(cluster, "certificate-authority", base, f"cluster {cluster_name!r} of {origin}")
    server = _checked_server(str(cluster.get("server") or ""), f"cluster {cluster_name!r} of {origin}")
    proxy = str(cluster.get("proxy-url") or "")
    if proxy and urllib.parse.urlsplit(proxy).scheme not in ("http", "https"):
        raise ConfigError(f"cluster {cluster_name!r} of {origin}: proxy-url must be http:// or https://")
    return Access(
        server=server,
        origin=origin,
        credentials=_credentials(merged, user_name, context=name, origin=origin),
        user=user_name,
        namespace=str(chosen.get("namespace") or "default"),
        ca=ca.read("the CA file") if ca else b"",
        ca_origin=_ca_origin(ca, cluster_name, merged.file_of("cluster", cluster_name)),
        verify=not cluster.get("insecure-skip-tls-verify"),
        tls_server_name=str(cluster.get("tls-server-name") or ""),
        proxy=proxy or proxy_of(server, environ),
        impersonation=_impersonation(merged.named("user", user_name, advice=f"{origin} names it") if user_name else {}),
    )


def _impersonation(user: _Entry) -> tuple[tuple[str, str], ...]:
    """The headers for a user who acts as another (`kubectl --as`): dropped, they would mean more rights than meant."""
    headers = [("Impersonate-User", str(user["as"]))] if user.get("as") else []
    if user.get("as-uid"):
        headers.append(("Impersonate-Uid", str(user["as-uid"])))
    headers += [("Impersonate-Group", str(group)) for group in user.get("as-groups") or ()]
    for key, values in (user.get("as-user-extra") or {}).items():
        headers += [(f"Impersonate-Extra-{urllib.parse.quote(str(key), safe='')}", str(value)) for value in values]
    return tuple(headers)


def _ca_origin(ca: Pem | None, cluster: str, file: pathlib.Path) -> str:
    if ca is None:
        return "the certificate authorities of this machine"
    if ca.path is not None:
        return f"the CA file {ca.path}"
    return f"the certificate-authority-data of cluster {cluster!r} in {file}"


def _credentials(merged: "_Merged", name: str, *, context: str, origin: str) -> Credentials:
    if not name:
        return FileCredentials()
    user = merged.named("user", name, advice=f"{origin} names it")
    base = merged.file_of("user", name).parent
    if user.get("auth-provider"):
        return ProviderCredentials(paths=os.pathsep.join(map(str, merged.paths)), context=context, origin=origin)
    plugin = user.get("exec")
    if plugin and not user.get("token"):
        if not isinstance(plugin, dict) or not plugin.get("command"):
            raise ConfigError(f"user {name!r} of {origin}: exec needs a command")
        command = str(plugin["command"])
        if "/" in command:
            command = str(base / command)
        arguments = [str(argument) for argument in plugin.get("args") or ()]
        return ExecCredentials({**plugin, "command": command, "args": arguments}, origin=origin)
    authorization = f"Bearer {user['token']}" if user.get("token") else ""
    if not authorization and user.get("username"):
        authorization = basic(str(user["username"]), str(user.get("password") or ""))
    where = f"user {name!r} of {origin}"
    certificate, key = _pem(user, "client-certificate", base, where), _pem(user, "client-key", base, where)
    if (certificate is None) != (key is None):
        raise ConfigError(f"{where} needs both client-certificate and client-key, or neither")
    token_file = base / str(user["tokenFile"]) if user.get("tokenFile") else None  # beats `token`, as in kubectl
    return FileCredentials(authorization=authorization, token_file=token_file, certificate=certificate, key=key)


def _pem(entry: _Entry, key: str, base: pathlib.Path, where: str) -> Pem | None:
    data = entry.get(f"{key}-data")
    if data:
        try:
            return Pem(data=base64.b64decode(str(data), validate=True))
        except binascii.Error as error:
            raise ConfigError(f"{where}: {key}-data is not base64") from error
    if entry.get(key):
        path = base / str(entry[key])
        if not path.is_file():
            raise ConfigError(f"{where}: {key} names {path}, which does not exist")
        return Pem(path=path)
    return None


def _checked_server(server: str, where: str) -> str:
    parts = urllib.parse.urlsplit(server)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"{where}: server must be like https://host:6443, not {server!r}")
    return server.rstrip("/")


class _Merged:
    """Several kubeconfigs as one: the first file that names a context, cluster or user wins."""

    def __init__(self, paths: list[pathlib.Path]) -> None:
        self.paths = paths
        self.current = ""
        self._entries: dict[str, dict[str, tuple[_Entry, pathlib.Path]]] = {"context": {}, "cluster": {}, "user": {}}
        for path in paths:
            document = _document(path)
            self.current = self.current or str(document.get("current-context") or "")
            for what, known in self._entries.items():
                for item in _items(document, what, path):
                    body = item.get(what) or {}
                    if not isinstance(body, dict):
                        raise ConfigError(f"{path} is no kubeconfig: the {what} {item['name']!r} is not a map")
                    known.setdefault(str(item["name"]), (body, path.absolute()))

    @property
    def where(self) -> str:
        return "the kubeconfig " + ", ".join(map(str, self.paths))

    def choice(self) -> str:
        """The contexts that there are, in words."""
        names = sorted(self._entries["context"])
        return "it has " + ", ".join(names) if names else "it has none"

    def named(self, what: str, name: str, *, advice: str) -> _Entry:
        if name not in self._entries[what]:
            raise ConfigError(f"{self.where} has no {what} {name!r}: {advice}")
        return self._entries[what][name][0]

    def file_of(self, what: str, name: str) -> pathlib.Path:
        return self._entries[what][name][1]


def _document(path: pathlib.Path) -> _Entry:
    try:
        document = yaml.safe_load(read_file(path, "the kubeconfig"))
    except yaml.YAMLError as error:
        # The parser's own words quote the file, and the file holds secrets: only the place is told.
        mark = getattr(error, "problem_mark", None)
        place = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        raise ConfigError(f"the kubeconfig {path} is not valid YAML{place}: correct it or give --kubeconfig") from None
    if document is None:
        document = {}
    if not isinstance(document, dict):
        raise ConfigError(f"{path} is no kubeconfig: it must be a map with clusters, contexts and users")
    return document


def _items(document: _Entry, what: str, path: pathlib.Path) -> list[_Entry]:
    items = document.get(f"{what}s") or []
    if not isinstance(items, list) or not all(isinstance(item, dict) and item.get("name") for item in items):
        raise ConfigError(f"{path} is no kubeconfig: {what}s must be a list whose entries have names")
    return items
