"""Finding the cluster: which file counts, and one clear line for everything that can be wrong with it."""

import asyncio
import base64
import datetime as dt
import json
import os
import pathlib
import sys
from typing import Any

import pytest
import yaml

from growth.kube import access
from growth.kube.credentials import ExecCredentials, Identity
from growth.kube.errors import ConfigError

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
SECRET = "s3cr3t"


def config(**changes: Any) -> dict[str, Any]:
    """A good kubeconfig with one of everything; `changes` replace top-level parts."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "dev",
        "contexts": [{"name": "dev", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://dev.invalid:6443/"}}],
        "users": [{"name": "u", "user": {"token": SECRET}}],
        **changes,
    }


def written(path: pathlib.Path, content: dict[str, Any] | str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return str(path)


def user(**fields: Any) -> dict[str, Any]:
    return config(users=[{"name": "u", "user": fields}])


def cluster(**fields: Any) -> dict[str, Any]:
    return config(clusters=[{"name": "c", "cluster": {"server": "https://dev.invalid", **fields}}])


def identity(found: access.Access) -> Identity:
    return asyncio.run(found.credentials.current(NOW))


def test_a_kubeconfig_says_everything(tmp_path: pathlib.Path) -> None:
    """Server, user, namespace, token and origin come from the current context."""
    path = written(tmp_path / "config", config())
    found = access.find(kubeconfig=path, environ={})
    assert (found.server, found.user, found.namespace) == ("https://dev.invalid:6443", "u", "team")
    assert found.origin == f"context 'dev' of {path}"
    assert identity(found).authorization == f"Bearer {SECRET}"


def test_a_context_can_be_chosen(tmp_path: pathlib.Path) -> None:
    """--context beats current-context."""
    contexts = [{"name": name, "context": {"cluster": name}} for name in ("dev", "prod")]
    clusters = [{"name": name, "cluster": {"server": f"https://{name}.invalid"}} for name in ("dev", "prod")]
    path = written(tmp_path / "config", config(contexts=contexts, clusters=clusters))
    assert access.find(kubeconfig=path, context="prod", environ={}).server == "https://prod.invalid"


def test_several_files_are_one(tmp_path: pathlib.Path) -> None:
    """KUBECONFIG lists files: the first to name a thing wins, missing files are passed over."""
    first = written(
        tmp_path / "a" / "config", {"current-context": "dev", "users": [{"name": "u", "user": {"token": "one"}}]}
    )
    second = written(tmp_path / "b" / "config", config(**{"current-context": "other"}))
    listed = os.pathsep.join([str(tmp_path / "none"), first, second])
    found = access.find(environ={"KUBECONFIG": listed})
    assert found.server == "https://dev.invalid:6443"
    assert identity(found).authorization == "Bearer one"


def test_files_are_found_beside_their_kubeconfig(tmp_path: pathlib.Path) -> None:
    """Relative paths are relative to the file that holds them, the user's and the cluster's each to its own."""
    written(tmp_path / "a" / "token", "from-file\n")
    written(tmp_path / "b" / "ca.crt", "the authority")
    users = [{"name": "u", "user": {"tokenFile": "token"}}]
    first = written(tmp_path / "a" / "config", {"users": users})
    clusters = [{"name": "c", "cluster": {"server": "https://dev.invalid", "certificate-authority": "ca.crt"}}]
    second = written(tmp_path / "b" / "config", config(clusters=clusters, users=[]))
    found = access.find(environ={"KUBECONFIG": os.pathsep.join([first, second])})
    assert identity(found).authorization == "Bearer from-file"
    assert found.ca == b"the authority"
    assert found.ca_origin == f"the CA file {tmp_path / 'b' / 'ca.crt'}"


def test_the_home_directory_is_the_default(tmp_path: pathlib.Path) -> None:
    """Without --kubeconfig and KUBECONFIG it is ~/.kube/config, also inside a pod."""
    written(tmp_path / ".kube" / "config", config())
    environ = {"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    assert access.find(environ=environ).server == "https://dev.invalid:6443"


def test_inline_data_is_decoded(tmp_path: pathlib.Path) -> None:
    """*-data fields are base64."""
    encoded = base64.b64encode(b"pem").decode()
    path = written(
        tmp_path / "config",
        {
            **cluster(**{"certificate-authority-data": encoded}),
            "users": [{"name": "u", "user": {"client-certificate-data": encoded, "client-key-data": encoded}}],
        },
    )
    found = access.find(kubeconfig=path, environ={})
    assert found.ca == b"pem"
    assert identity(found) == Identity(certificate=b"pem", key=b"pem")


def test_other_settings_of_a_cluster_are_kept(tmp_path: pathlib.Path) -> None:
    """Skipped verification, another server name and a proxy are honoured."""
    fields = {"insecure-skip-tls-verify": True, "tls-server-name": "x.invalid", "proxy-url": "http://proxy.invalid:1"}
    found = access.find(kubeconfig=written(tmp_path / "config", cluster(**fields)), environ={})
    assert (found.verify, found.tls_server_name, found.proxy) == (False, "x.invalid", "http://proxy.invalid:1")
    context = found.tls(Identity())
    assert not context.check_hostname


def test_a_name_and_a_password_are_basic_authentication(tmp_path: pathlib.Path) -> None:
    """username and password become a Basic header."""
    found = access.find(kubeconfig=written(tmp_path / "config", user(username="me", password=SECRET)), environ={})
    assert identity(found).authorization == "Basic " + base64.b64encode(f"me:{SECRET}".encode()).decode()


def test_a_token_file_beats_a_token(tmp_path: pathlib.Path) -> None:
    """With both, the file counts, as in kubectl."""
    written(tmp_path / "token", "from-file")
    found = access.find(kubeconfig=written(tmp_path / "config", user(token="inline", tokenFile="token")), environ={})
    assert identity(found).authorization == "Bearer from-file"


def test_acting_as_another_is_kept(tmp_path: pathlib.Path) -> None:
    """`as` and its kin become headers; to drop them would give a user more rights than meant."""
    fields = {"token": "t", "as": "other", "as-groups": ["g1", "g2"], "as-user-extra": {"a/b": ["c"]}}
    found = access.find(kubeconfig=written(tmp_path / "config", user(**fields)), environ={})
    assert found.impersonation == (
        ("Impersonate-User", "other"),
        ("Impersonate-Group", "g1"),
        ("Impersonate-Group", "g2"),
        ("Impersonate-Extra-a%2Fb", "c"),
    )


BROKEN: dict[str, tuple[dict[str, Any] | str, str]] = {
    "not YAML": (f"users: [{{token: {SECRET}\n", "not valid YAML (line 2"),
    "a list": (f"[{SECRET}]", "must be a map"),
    "no list of contexts": (config(contexts={"dev": {}}), "contexts must be a list"),
    "a context without a name": (config(contexts=[{"context": {}}]), "entries have names"),
    "an unknown context": (
        config(**{"current-context": "gone"}),
        "has no context 'gone': choose one with --context (it has dev)",
    ),
    "no current context": (config(**{"current-context": ""}), "has no current-context"),
    "an empty file": ("", "has no current-context: choose one with --context (it has none)"),
    "an unknown user": (config(users=[]), "has no user 'u'"),
    "an unknown cluster": (config(clusters=[]), "has no cluster 'c'"),
    "a context without a cluster": (config(contexts=[{"name": "dev", "context": {}}]), "names no cluster"),
    "a cluster that is text": (config(clusters=[{"name": "c", "cluster": "x"}]), "the cluster 'c' is not a map"),
    "no server": (config(clusters=[{"name": "c", "cluster": {}}]), "server must be like https://host:6443"),
    "a server without a scheme": (cluster(server="dev.invalid:6443"), "server must be like https://host:6443"),
    "a missing CA file": (cluster(**{"certificate-authority": "ca.crt"}), "ca.crt, which does not exist"),
    "a CA that is not base64": (
        cluster(**{"certificate-authority-data": "%%%"}),
        "certificate-authority-data is not base64",
    ),
    "a certificate without its key": (user(**{"client-certificate-data": "cGVt"}), "needs both"),
    "a plugin without a command": (user(exec={"apiVersion": "x"}), "exec needs a command"),
    "a socks proxy": (cluster(**{"proxy-url": "socks5://x:1"}), "proxy-url must be http"),
}


@pytest.mark.parametrize("what", sorted(BROKEN))
def test_a_broken_kubeconfig_gets_one_clear_line(tmp_path: pathlib.Path, what: str) -> None:
    """Each mistake is named in one line, with the file, and nothing secret from it."""
    content, says = BROKEN[what]
    path = written(tmp_path / "config", content)
    with pytest.raises(ConfigError) as caught:
        access.find(kubeconfig=path, environ={})
    line = str(caught.value)
    assert says in line
    assert path in line
    assert "\n" not in line
    assert SECRET not in line


def test_a_missing_kubeconfig_is_named(tmp_path: pathlib.Path) -> None:
    """A file that does not exist is named together with where it was named."""
    path = str(tmp_path / "none")
    with pytest.raises(ConfigError, match=f"{path} does not exist: correct --kubeconfig"):
        access.find(kubeconfig=path, environ={})
    with pytest.raises(ConfigError, match=f"{path} does not exist: correct KUBECONFIG"):
        access.find(environ={"KUBECONFIG": path})


def test_no_cluster_at_all_is_said(tmp_path: pathlib.Path) -> None:
    """Without any file and outside a pod, the line says what was looked for and what to give."""
    with pytest.raises(ConfigError, match=r"no cluster is configured: .* give --kubeconfig"):
        access.find(environ={"HOME": str(tmp_path)})


def pod(folder: pathlib.Path) -> dict[str, str]:
    """What a kubelet gives a pod."""
    for name, content in (("token", SECRET), ("ca.crt", "the authority"), ("namespace", "growth-system")):
        written(folder / name, content)
    return {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}


def test_a_pod_uses_its_service_account(tmp_path: pathlib.Path) -> None:
    """In a pod the address comes from the environment, the rest from the mounted files."""
    found = access.in_cluster(pod(tmp_path), folder=tmp_path)
    assert (found.server, found.namespace, found.ca) == ("https://[fd00::1]:443", "growth-system", b"the authority")
    assert identity(found).authorization == f"Bearer {SECRET}"


@pytest.mark.parametrize("lost", ["token", "ca.crt"])
def test_a_pod_without_its_files_is_told_which(tmp_path: pathlib.Path, lost: str) -> None:
    """A missing token or CA file is named."""
    environ = pod(tmp_path)
    (tmp_path / lost).unlink()
    with pytest.raises(ConfigError, match=str(tmp_path / lost)):
        access.in_cluster(environ, folder=tmp_path)


def test_an_empty_token_file_is_an_error(tmp_path: pathlib.Path) -> None:
    """A token file with nothing in it is named, instead of sending nobody's credentials."""
    found = access.in_cluster(pod(tmp_path), folder=tmp_path)
    written(tmp_path / "token", "\n")
    with pytest.raises(ConfigError, match="is empty"):
        identity(found)


def test_an_authority_that_is_no_certificate_is_named(tmp_path: pathlib.Path) -> None:
    """A CA that is not PEM is an error before anything is sent."""
    found = access.in_cluster(pod(tmp_path), folder=tmp_path)
    with pytest.raises(ConfigError, match=r"the CA file .*ca\.crt holds no PEM certificate"):
        found.tls(Identity())


def plugin(path: pathlib.Path, script: str, **spec: Any) -> access.Access:
    """Access through an exec plugin that runs this Python."""
    program = path / "plugin.py"
    program.write_text(script)
    described = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": [str(program)],
        "env": [{"name": "PLUGIN_SAYS", "value": SECRET}],
        **spec,
    }
    return access.find(kubeconfig=written(path / "config", user(exec=described)), environ={})


def credential(**status: Any) -> str:
    """A plugin that counts its runs and prints this status."""
    body = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    return (
        "import os, pathlib, json\n"
        "runs = pathlib.Path(__file__ + '.runs')\n"
        "runs.write_text((runs.read_text() if runs.exists() else '') + 'x')\n"
        f"print(json.dumps({body!r}).replace('PLUGIN_SAYS', os.environ['PLUGIN_SAYS']))\n"
    )


def runs(path: pathlib.Path) -> int:
    return len((path / "plugin.py.runs").read_text())


def test_a_plugin_gives_a_token_until_it_expires(tmp_path: pathlib.Path) -> None:
    """The plugin runs at first use, again shortly before its answer expires, and after a refusal."""
    found = plugin(tmp_path, credential(token="PLUGIN_SAYS", expirationTimestamp="2026-01-01T01:00:00Z"))

    async def law() -> None:
        source = found.credentials
        assert (await source.current(NOW)).authorization == f"Bearer {SECRET}"
        await source.current(NOW + dt.timedelta(minutes=59))
        assert runs(tmp_path) == 1
        await source.current(NOW + dt.timedelta(minutes=59, seconds=31))
        assert runs(tmp_path) == 2
        source.forget()
        await source.current(NOW)
        assert runs(tmp_path) == 3

    asyncio.run(law())


def test_a_plugin_can_give_a_certificate(tmp_path: pathlib.Path) -> None:
    """A client certificate and its key come as PEM text."""
    found = plugin(tmp_path, credential(clientCertificateData="cert", clientKeyData="key"))
    assert identity(found) == Identity(certificate=b"cert", key=b"key")


def test_a_plugin_beside_its_kubeconfig_is_found(tmp_path: pathlib.Path) -> None:
    """A command with a slash is relative to the kubeconfig."""
    program = tmp_path / "bin" / "login"
    body = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "t"}}
    written(program, f"#!/bin/sh\necho '{json.dumps(body)}'\n")
    program.chmod(0o755)
    described = {"apiVersion": "client.authentication.k8s.io/v1", "command": "bin/login"}
    found = access.find(kubeconfig=written(tmp_path / "config", user(exec=described)), environ={})
    assert identity(found).authorization == "Bearer t"


LEAKY = "import os, sys\nprint(os.environ['PLUGIN_SAYS'])\nsys.stderr.write(os.environ['PLUGIN_SAYS'])\n"


@pytest.mark.parametrize(
    ("script", "spec", "says"),
    [
        (LEAKY + "sys.exit(3)\n", {}, "failed with exit code 3: run it by hand to see why"),
        (LEAKY, {}, "did not answer with an ExecCredential"),
        (credential(), {}, "gave neither a token nor a client certificate"),
        (credential(token=["PLUGIN_SAYS"]), {}, "whose status is not valid"),
        ("", {"command": "no-such-plugin"}, "'no-such-plugin' .* was not found: install it"),
        ("", {"command": "no-such-plugin", "installHint": "brew install it"}, "was not found: brew install it"),
        ("", {"command": "/dev/null"}, "cannot be run: Permission denied"),
    ],
)
def test_a_plugin_that_fails_gets_one_clear_line(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture, script: str, spec: dict[str, Any], says: str
) -> None:
    """The line names the plugin and the context; what the plugin printed is in no error and no log."""
    found = plugin(tmp_path, script, **spec)
    assert isinstance(found.credentials, ExecCredentials)
    with pytest.raises(ConfigError, match=says) as caught:
        identity(found)
    line = str(caught.value)
    assert "context 'dev' of" in line
    assert "\n" not in line
    assert SECRET not in line
    assert SECRET not in caplog.text


def jwt(expires: int) -> str:
    """A token as identity providers make them, unsigned."""
    parts = ({"alg": "none"}, {"exp": expires})
    head, body = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
    return f"{head}.{body}.x"


@pytest.mark.filterwarnings("default::DeprecationWarning")  # kubernetes-asyncio's own, from Python 3.12 on
def test_an_identity_providers_token_is_used(tmp_path: pathlib.Path) -> None:
    """An `auth-provider: oidc` whose token is good gives that token."""
    token = jwt(4102444800)
    provider = {"name": "oidc", "config": {"id-token": token}}
    found = access.find(kubeconfig=written(tmp_path / "config", user(**{"auth-provider": provider})), environ={})
    assert identity(found).authorization == f"Bearer {token}"


@pytest.mark.filterwarnings("default::DeprecationWarning")  # kubernetes-asyncio's own, from Python 3.12 on
def test_an_identity_provider_that_fails_gets_one_clear_line(tmp_path: pathlib.Path) -> None:
    """An expired token that cannot be renewed: the line names the context and says to log in again, without the token."""
    token = jwt(1)
    provider = {"name": "oidc", "config": {"id-token": token}}
    path = written(tmp_path / "config", user(**{"auth-provider": provider}))
    with pytest.raises(ConfigError, match="log in again") as caught:
        identity(access.find(kubeconfig=path, environ={}))
    assert f"context 'dev' of {path}" in str(caught.value)
    assert token not in str(caught.value)
