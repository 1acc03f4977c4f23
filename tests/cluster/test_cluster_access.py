"""The client on a real API server: each way in, and one clear line for each way of being kept out."""

import asyncio
import pathlib
import socket
import ssl

import pytest
import yaml

from growth.api.kinds import Json, Kind
from growth.kube import access
from growth.kube.credentials import Identity
from growth.kube.describe import describe
from growth.kube.errors import ConfigError, KubeError
from growth.kube.http import HttpApi
from growth.ports import SystemClock
from tools.controlplane.plane import Plane, token_of

NODES: Kind[Json] = Kind("", "v1", "Node", "nodes", False, dict)
MAPS: Kind[Json] = Kind("", "v1", "ConfigMap", "configmaps", True, dict)
UNKNOWN: Kind[Json] = Kind("growth.dev", "v9", "Nothing", "nothings", False, dict)


def line_of(found: access.Access, *, kind: Kind[Json] = NODES) -> str:
    """What a person reads when listing fails."""

    async def law() -> str:
        async with HttpApi.connect(found, clock=SystemClock(), user_agent="growth/test") as api:
            try:
                await api.list(kind)
            except KubeError as error:
                return describe(error, found)
        raise AssertionError("nothing failed")

    line = asyncio.run(law())
    assert "\n" not in line
    assert "-token" not in line
    return line


def changed(plane: Plane, path: pathlib.Path, **cluster: object) -> str:
    """The administrator's kubeconfig with another cluster entry."""
    content = yaml.safe_load(plane.kubeconfig.read_text())
    content["clusters"][0]["cluster"].update(cluster)
    path.write_text(yaml.safe_dump(content))
    return str(path)


def test_an_expired_token_is_said_so(apiserver: Plane, tmp_path: pathlib.Path) -> None:
    """401: the line names the server, the user and the context, and says to log in again."""
    content = yaml.safe_load(apiserver.kubeconfig.read_text())
    content["users"][0]["user"]["token"] = "yesterdays-token"
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(content))
    assert line_of(access.find(kubeconfig=str(path))) == (
        f"{apiserver.url} refuses the credentials of user 'admin': they are wrong or have expired; log in again "
        f"(context 'plane' of {path})"
    )


def test_a_missing_right_is_named(apiserver: Plane) -> None:
    """403: the line names the user, the verb and the resource."""
    path = apiserver.kubeconfig_of("nobody")
    assert line_of(access.find(kubeconfig=str(path))) == (
        "user 'nobody' may not list nodes; ask for the roles that `growth rbac` prints, or choose another --context "
        f"(context 'plane' of {path})"
    )


def test_a_missing_right_to_a_groups_kind_is_named(apiserver: Plane) -> None:
    """403 for a kind of a group: the resource is written with its group."""
    found = access.find(kubeconfig=str(apiserver.kubeconfig_of("nobody")))
    leases: Kind[Json] = Kind("coordination.k8s.io", "v1", "Lease", "leases", True, dict)
    assert "may not list leases.coordination.k8s.io" in line_of(found, kind=leases)


def test_a_wrong_authority_is_named(apiserver: Plane, tmp_path: pathlib.Path) -> None:
    """A server whose certificate another authority signed: the line names the CA file that was used."""
    other = tmp_path / "other.crt"
    other.write_text(OTHER_AUTHORITY)
    path = changed(apiserver, tmp_path / "config", **{"certificate-authority": str(other)})
    line = line_of(access.find(kubeconfig=path))
    assert line.startswith(f"{apiserver.url} shows a certificate that the CA file {other} did not sign: ")


def test_a_wrong_name_is_named(apiserver: Plane, tmp_path: pathlib.Path) -> None:
    """A certificate for another name: the line says which name was expected."""
    path = changed(apiserver, tmp_path / "config", **{"tls-server-name": "other.invalid"})
    line = line_of(access.find(kubeconfig=path))
    assert "other.invalid" in line
    assert apiserver.url in line


def test_a_server_that_is_not_there_is_named(apiserver: Plane, tmp_path: pathlib.Path) -> None:
    """Nobody listens: the line names the address and the context."""
    path = changed(apiserver, tmp_path / "config", server="https://127.0.0.1:1")
    assert line_of(access.find(kubeconfig=path)) == (
        "https://127.0.0.1:1 cannot be reached: connection refused; is the cluster running and the address right? "
        f"(context 'plane' of {path})"
    )


def test_a_host_that_nobody_knows_is_named(
    apiserver: Plane, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name without an address: the line says so."""

    def unknown(*_: object, **__: object) -> None:
        """As a machine with a network says it at once; one without may think about it for a minute."""
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    path = changed(apiserver, tmp_path / "config", server="https://no-such-host.invalid:6443")
    assert "https://no-such-host.invalid:6443 cannot be reached: its name is not known" in line_of(
        access.find(kubeconfig=path)
    )


def test_plain_http_to_a_tls_port_is_named(apiserver: Plane, tmp_path: pathlib.Path) -> None:
    """http:// instead of https://: the line says that no API server answered so."""
    path = changed(apiserver, tmp_path / "config", server=apiserver.url.replace("https", "http"))
    assert "by something that is no Kubernetes API server" in line_of(access.find(kubeconfig=path))


def test_a_kind_that_is_not_installed_is_named(apiserver: Plane) -> None:
    """A kind without its CRD: the line names the path and the remedy."""
    line = line_of(access.find(kubeconfig=str(apiserver.kubeconfig)), kind=UNKNOWN)
    assert "does not serve /apis/growth.dev/v9/nothings" in line
    assert "growth crds" in line


def test_a_broken_kubeconfig_needs_no_server(tmp_path: pathlib.Path) -> None:
    """A kubeconfig that cannot be read is one line, before anything is sent."""
    path = tmp_path / "config"
    path.write_text("clusters: [\n")
    with pytest.raises(ConfigError) as caught:
        access.find(kubeconfig=str(path))
    assert describe(caught.value) == (
        f"the kubeconfig {path} is not valid YAML (line 2, column 1): correct it or give --kubeconfig"
    )


def test_verification_can_be_skipped(apiserver: Plane, tmp_path: pathlib.Path) -> None:
    """insecure-skip-tls-verify lets a wrong authority pass."""
    other = tmp_path / "other.crt"
    other.write_text(OTHER_AUTHORITY)
    fields = {"certificate-authority": str(other), "insecure-skip-tls-verify": True}
    found = access.find(kubeconfig=changed(apiserver, tmp_path / "config", **fields))

    async def law() -> None:
        async with HttpApi.connect(found, clock=SystemClock(), user_agent="growth/test") as api:
            await api.list(NODES)

    asyncio.run(law())


def test_acting_as_another_has_that_ones_rights(apiserver: Plane, tmp_path: pathlib.Path) -> None:
    """A kubeconfig that says `as: nobody` is refused what nobody is refused."""
    content = yaml.safe_load(apiserver.kubeconfig.read_text())
    content["users"][0]["user"]["as"] = "nobody"
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(content))
    assert line_of(access.find(kubeconfig=str(path))).startswith("user 'nobody' may not list nodes")


def test_a_pods_account_works_and_survives_a_rotation(apiserver: Plane, tmp_path: pathlib.Path) -> None:
    """With the files of a pod the server lets us in; a token that was refused is read again from its file."""
    (tmp_path / "ca.crt").write_bytes(apiserver.ca.read_bytes())
    (tmp_path / "token").write_text("not-yet")
    host, port = apiserver.url.removeprefix("https://").split(":")
    environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    found = access.in_cluster(environ, folder=tmp_path)

    async def law() -> None:
        async with HttpApi.connect(found, clock=SystemClock(), user_agent="growth/test") as api:
            (tmp_path / "token").write_text(token_of("admin"))
            await api.list(NODES)

    asyncio.run(law())


def test_a_client_certificate_must_fit_its_key(apiserver: Plane) -> None:
    """A certificate with its own key is taken; with another's it is a ConfigError that names the context."""
    found = access.find(kubeconfig=str(apiserver.kubeconfig))
    certificate = apiserver.ca.read_bytes()
    key = apiserver.ca.with_suffix(".key").read_bytes()
    assert isinstance(found.tls(Identity(certificate=certificate, key=key)), ssl.SSLContext)
    other = (apiserver.folder / "service-accounts.pem").read_bytes()
    with pytest.raises(ConfigError, match=r"context 'plane' of .* do not belong together"):
        found.tls(Identity(certificate=certificate, key=other))


def test_an_odd_letter_does_not_break_a_watch(apiserver: Plane) -> None:
    """Servers write U+0085 and U+2028 as they are; a watch brings them through."""
    odd = "one\u0085two\u2028three\x1c"

    async def law() -> None:
        found = access.find(kubeconfig=str(apiserver.kubeconfig))
        async with HttpApi.connect(found, clock=SystemClock(), user_agent="growth/test") as api:
            start = (await api.list(MAPS)).revision
            body = {"metadata": {"generateName": "odd-", "annotations": {"odd": odd}}}
            await api.create(MAPS, body, namespace="default")
            async with asyncio.timeout(120), api.watch(MAPS, revision=start, namespace="default") as events:
                event = await anext(events)
            assert event.object["metadata"]["annotations"]["odd"] == odd

    asyncio.run(law())


def test_long_lists_come_through(apiserver: Plane) -> None:
    """A list of many megabytes, compressed on the way, is read whole."""

    async def law() -> None:
        found = access.find(kubeconfig=str(apiserver.kubeconfig))
        async with HttpApi.connect(found, clock=SystemClock(), user_agent="growth/test", qps=1e4) as api:
            bodies = [
                {"metadata": {"generateName": "big-", "labels": {"big": "yes"}}, "data": {"x": "y" * 900_000}}
            ] * 8
            await asyncio.gather(*(api.create(MAPS, body, namespace="default") for body in bodies))
            page = await api.list(MAPS, namespace="default", labels="big=yes")
            assert [len(item["data"]["x"]) for item in page.items] == [900_000] * 8

    asyncio.run(law())


# Made for this test and its key thrown away: it signs nothing.
OTHER_AUTHORITY = """\
-----BEGIN CERTIFICATE-----
MIIBkDCCATWgAwIBAgIUZ283NKi7C1LVGZD2b8WfCB0BSEAwCgYIKoZIzj0EAwIw
HDEaMBgGA1UEAwwRYW5vdGhlciBhdXRob3JpdHkwIBcNMjYxMTE1MTczNTAyWhgP
MjEyNjEwMjIxNzM1MDJaMBwxGjAYBgNVBAMMEWFub3RoZXIgYXV0aG9yaXR5MFkw
EwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEEVkAtApR+lHKg0g78y4j1oKh2xHmeW/f
Qx299YNtuO17i/y4cCjRlhKrQHl/mQ3Ff62qj+0u32mkgFOqtGItvaNTMFEwHQYD
VR0OBBYEFOFGU0DvBQTjx5nXeVDTpuCkSbbXMB8GA1UdIwQYMBaAFOFGU0DvBQTj
x5nXeVDTpuCkSbbXMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSQAwRgIh
AIibMf5mQB+Okm/F2y1G6qmccnOW1jt+5vJnZ5+owy6DAiEA3xG6db4YIktOrq56
hdRf0CJzFUnyZRJqJGeI8gxXta0=
-----END CERTIFICATE-----
"""
