"""The wire: ages, JSON paths, protobuf bodies, and what the HTTP server adds."""

import asyncio
import datetime as dt
import json
import stat
import struct
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from growth.api.kinds import Json
from growth.kube.errors import BadRequest
from growth.kube.memory.known import messages
from growth.kube.memory.serve import serving, write_kubeconfig
from growth.kube.memory.wire import jsonpath, protobuf
from growth.kube.memory.wire.ages import lapse
from growth.kube.memory.wire.routing import Answer, Request, Streaming, handle
from tests.unit.memory.builders import new_server, pod


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (224, "3m44s"),
        (600, "10m"),
        (10_799, "179m"),
        (10_800, "3h"),
        (11_100, "3h5m"),
        (28_800, "8h"),
        (172_799, "47h"),
        (172_800, "2d"),
        (180_000, "2d2h"),
        (691_200, "8d"),
        (86_400 * 800, "2y70d"),
        (86_400 * 730, "2y"),
        (86_400 * 3000, "8y"),
    ],
)
def test_ages_are_told_as_kubectl_tells_them(seconds: int, text: str) -> None:
    """At most two units, coarser with age."""
    assert lapse(dt.timedelta(seconds=seconds)) == text


WHOLE: Json = {
    "spec": {"n": 3, "list": ["a", "b"], "a.b": 1, "items": [{"name": "x", "v": 1}, {"name": "y", "v": 2}]},
    "status": {"conditions": [{"type": "Ready", "status": "False"}, {"type": "Live", "status": "True"}]},
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (".spec.n", 3),
        ("{.spec.n}", 3),
        ("$.spec.n", 3),
        (".spec.missing.deeper", None),
        (".spec.list[1]", "b"),
        (".spec.list[-1]", "b"),
        (".spec.list[7]", None),
        (".spec['a.b']", 1),
        (r".spec.a\.b", 1),
        (".spec.items[*].name", "x"),
        ('.status.conditions[?(@.type=="Live")].status', "True"),
        ("..", WHOLE),
        (".spec.items[?(@.v==2)].name", "y"),
        (".spec.items[?(@.name!='x')].v", 2),
        (".status.conditions[?(@.type=='None')].status", None),
    ],
)
def test_printer_columns_are_found_by_path(path: str, value: Any) -> None:
    """The JSON paths that CustomResourceDefinitions use lead to the first value, or to nothing."""
    assert jsonpath.first(WHOLE, path) == value


def _varint(value: int) -> bytes:
    value &= 2**64 - 1
    made = bytearray()
    while value >= 0x80:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*made, value])


def _part(number: int, payload: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(payload)) + payload


def encoded(message: str, whole: Json) -> bytes:
    """Protobuf of an object by the same table: the way back, for tests only."""
    made = b""
    for number, (label, kind) in messages()[message].items():
        if label in whole:
            items = whole[label] if kind[0] == "*" else [whole[label]]
            for item in items:
                made += _field(number, kind.lstrip("*"), item)
    return made


def _field(number: int, kind: str, item: Any) -> bytes:
    match kind:
        case "s":
            return _part(number, item.encode())
        case "i" | "b":
            return _varint(number << 3) + _varint(int(item))
        case "d":
            return _varint(number << 3 | 1) + struct.pack("<d", item)
        case "IntOrString":
            inner = (
                _varint(8) + _varint(1) + _part(3, item.encode())
                if isinstance(item, str)
                else _varint(16) + _varint(item)
            )
            return _part(number, inner)
        case "Quantity":
            return _part(number, _part(1, item.encode()))
        case "Time":
            seconds = int(dt.datetime.fromisoformat(item).timestamp())
            return _part(number, _varint(8) + _varint(seconds))
        case _ if kind[0] == "%":
            pairs = (_part(1, key.encode()) + _field(2, kind[1:], value) for key, value in item.items())
            return b"".join(_part(number, pair) for pair in pairs)
        case _:
            return _part(number, encoded(kind, item))


def body_of(kind: str, version: str, whole: Json) -> bytes:
    names = _part(1, version.encode()) + _part(2, kind.encode())
    return protobuf.MAGIC + _part(1, names) + _part(2, encoded(kind, whole))


DEPLOYMENT: Json = {
    "metadata": {"name": "web", "labels": {"app": "web"}, "creationTimestamp": "2026-01-01T00:00:00+00:00"},
    "spec": {
        "replicas": 0,
        "selector": {"matchLabels": {"app": "web"}},
        "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": "25%"}},
        "template": {
            "spec": {
                "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}],
                "tolerations": [{"key": "a", "operator": "Exists", "tolerationSeconds": 0}],
                "hostNetwork": True,
            }
        },
    },
}


def test_a_protobuf_body_says_what_its_json_would_say() -> None:
    """Texts, numbers, truths, lists, maps, quantities, times and numbers-or-percent come out as JSON has them."""
    found = protobuf.decode(body_of("Deployment", "apps/v1", DEPLOYMENT))
    assert (found["kind"], found["apiVersion"]) == ("Deployment", "apps/v1")
    assert found["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert found["spec"] == DEPLOYMENT["spec"]


def test_zeros_that_fill_a_place_are_left_out_of_protobuf_bodies() -> None:
    """Go writes every plain field; only where zero has a meaning of its own is it kept."""
    options = {"gracePeriodSeconds": 0, "propagationPolicy": "", "orphanDependents": False}
    found = protobuf.decode(body_of("DeleteOptions", "v1", options))
    assert found == {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}


def test_inlined_members_stand_beside_their_holder() -> None:
    """A volume's source is a member in protobuf and none in JSON."""
    volume = _part(1, b"v") + _part(2, _part(2, b""))
    spec = _part(2, _part(1, volume))
    raw = protobuf.MAGIC + _part(1, _part(1, b"v1") + _part(2, b"Pod")) + _part(2, spec)
    assert protobuf.decode(raw)["spec"]["volumes"] == [{"name": "v", "emptyDir": {}}]


@given(st.binary(max_size=200))
def test_garbage_for_protobuf_is_a_bad_request(noise: bytes) -> None:
    """Whatever comes, the answer is an object or a BadRequest, never another failure."""
    for body in (noise, protobuf.MAGIC + noise, protobuf.MAGIC + _part(1, _part(2, b"Pod")) + _part(2, noise)):
        try:
            assert isinstance(protobuf.decode(body), dict)
        except BadRequest:
            continue


def ask(method: str, path: str, body: Any = None, **headers: str) -> Answer:
    sent = json.dumps(body).encode() if body is not None else b""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = handle(new_server(), Request(method, path, {}, names, sent))
    assert isinstance(answer, Answer)
    return answer


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/api/v1/pods", 200),
        ("GET", "/api/v1/gizmos", 404),
        ("GET", "/apis/apps/v2/deployments", 404),
        ("POST", "/api/v1/pods", 405),
        ("PUT", "/api/v1/namespaces/default/pods", 405),
        ("POST", "/api/v1/namespaces/default/pods/p", 405),
        ("GET", "/api/v1/namespaces/default/nodes", 404),
        ("GET", "/api/v1/pods/p", 404),
        ("GET", "/api/v1/namespaces/default", 200),
        ("GET", "/api/v1/namespaces/default/status", 200),
        ("GET", "/api/v1/namespaces/default/configmaps/c/status", 404),
        ("GET", "/api/v1/namespaces/default/pods/p/status/more", 404),
        ("GET", "/readyz", 200),
    ],
)
def test_each_path_has_its_answer(method: str, path: str, status: int) -> None:
    """Paths that name nothing are 404, verbs that a path does not know are 405."""
    assert ask(method, path, {}).status == status


def test_a_body_in_another_language_is_refused() -> None:
    """XML is 415; broken JSON is 400, and so is a patch that is none."""
    assert ask("POST", "/api/v1/nodes", {}, content_type="application/xml").status == 415
    server = new_server()
    broken = Request("POST", "/api/v1/nodes", {}, {}, b"{")
    assert getattr(handle(server, broken), "status", 0) == 400
    patch = Request("PATCH", "/api/v1/namespaces/default", {}, {"content-type": "application/merge-patch+json"}, b"[]")
    assert getattr(handle(server, patch), "status", 0) == 400


def test_the_first_line_of_a_table_watch_has_the_columns() -> None:
    """Later events of a watch for tables repeat no column definitions."""
    server = new_server()
    headers = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    for name in ("a", "b"):
        server.create(server.resource("", "v1", "pods"), pod(name), namespace="default")
    streaming = handle(server, Request("GET", "/api/v1/pods", {"watch": "1"}, headers, b""))
    assert isinstance(streaming, Streaming)
    first, second = (json.loads(streaming.line(*event))["object"] for event in streaming.watch.pending)
    assert [column["name"] for column in first["columnDefinitions"]][:3] == ["Name", "Ready", "Status"]
    assert second["columnDefinitions"] is None
    assert [row["cells"][0] for row in (*first["rows"], *second["rows"])] == ["a", "b"]
    streaming.end()
    assert server.statistics().watches == 0


def test_a_watch_may_begin_with_the_state_and_say_where_it_ends() -> None:
    """With sendInitialEvents come the objects, then a bookmark that says that these were all."""
    server = new_server()
    server.create(server.resource("", "v1", "pods"), pod("a"), namespace="default")
    query = {"watch": "true", "sendInitialEvents": "true", "allowWatchBookmarks": "true"}
    streaming = handle(server, Request("GET", "/api/v1/pods", query, {}, b""))
    assert isinstance(streaming, Streaming)
    first, last = (json.loads(streaming.line(*event)) for event in streaming.watch.pending)
    assert (first["type"], first["object"]["metadata"]["name"]) == ("ADDED", "a")
    assert last["type"] == "BOOKMARK"
    assert last["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_over_http_an_eviction_says_when_to_come_again() -> None:
    """A budget that is still being processed answers 429 with Retry-After; who asks is whom the request names."""

    async def law() -> None:
        server = new_server()
        pods = server.resource("", "v1", "pods")
        body = pod("p", nodeName="n")
        body["metadata"]["labels"] = {"app": "x"}
        server.create(pods, body, namespace="default")
        server.patch(pods, "p", {"status": {"phase": "Running"}}, namespace="default", subresource="status")
        budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}}
        server.create(server.resource("policy", "v1", "poddisruptionbudgets"), budget, namespace="default")
        async with serving(server) as url, aiohttp.ClientSession() as session:
            where = f"{url}/api/v1/namespaces/default/pods/p"
            async with session.post(f"{where}/eviction", json={"metadata": {"name": "p"}}) as answer:
                assert (answer.status, answer.headers["Retry-After"]) == (429, "10")
            async with session.delete(where, headers={"Impersonate-User": "zoe"}) as answer:
                assert answer.status == 200
        assert server.statistics().writes["zoe"] == 1

    asyncio.run(law())


def test_a_kubeconfig_is_for_its_owner_only(tmp_path: Path) -> None:
    """The file is readable by nobody else and names server and user."""
    write_kubeconfig(tmp_path / "config", "http://127.0.0.1:1", user="zoe")
    assert stat.S_IMODE((tmp_path / "config").stat().st_mode) == 0o600
    written = json.loads((tmp_path / "config").read_text())
    assert written["clusters"][0]["cluster"]["server"] == "http://127.0.0.1:1"
    assert written["users"][0]["user"] == {"as": "zoe"}
