"""How a new machine joins the cluster: the user data that it boots with, for each distribution. Pure.

What joining needs comes from one Secret in Growth's own namespace, by these keys:

| mode    | key                 | what                                                                                    |
|---------|---------------------|-----------------------------------------------------------------------------------------|
| k3s     | `server`            | the address to join, such as `https://10.0.0.2:6443`                                    |
|         | `token`             | a shared token; without it each machine gets one of its own                             |
|         | `caHash`            | SHA-256 of the server's CA certificate, so that machines trust that server only         |
|         | `version`, `prepare`| the version to install, and shell commands that run before it; both may be missing      |
| kubeadm | `apiServerEndpoint` | the address to join, such as `10.0.0.2:6443`                                            |
|         | `caCertHashes`      | `sha256:…`, one a line                                                                  |
|         | `token`, `prepare`  | as above                                                                                |
| talos   | `machineConfig`     | the machine configuration of a worker; hostname, labels, taints are added               |
| raw     | `userData`          | passed on as it is                                                                      |

A machine's own credential is a bootstrap token of the cluster that ends after half an hour.
"""

import dataclasses
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final

import yaml

from growth.api import names
from growth.api.nodeclasses import HetznerUserData as UserData
from growth.api.placement import Taint

# Where a machine of Hetzner's learns its own number.
METADATA: Final = "http://169.254.169.254/hetzner/v1/metadata/instance-id"
# Hetzner's limit, in bytes.
LARGEST: Final = 32 * 1024
_CURL: Final = "curl -sSf --retry 20 --retry-delay 2 --retry-connrefused"
# Stands for that number until the machine knows it.
NUMBER: Final = "@INSTANCE_ID@"
JOIN_SCRIPT: Final = "/usr/local/sbin/growth-join"
JOIN_LOG: Final = "/var/log/growth-join.log"
# Called without an argument the script makes attempts, each a call with one. What an attempt says is in the log; in the end the
# last of it is on the console, and the machine goes off: nothing else of it can be seen from outside.
_ATTEMPTS: Final = (
    "if [ $# = 0 ]; then",
    f"  log={JOIN_LOG}",
    '  : >> "$log" || log=/dev/null',
    "  for pause in 10 30 60 120 0; do",
    '    sh "$0" once >> "$log" 2>&1 && exit 0',
    '    echo "growth-join: an attempt to join the cluster failed: see $log" >&2',
    '    sleep "$pause"',
    "  done",
    '  tail -n 20 "$log" >&2',
    '  echo "growth-join: the machine could not join the cluster and goes off" >&2',
    "  poweroff",
    "  exit 1",
    "fi",
)

_ADDRESS: Final = re.compile(r"(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9.-]+)(:[0-9]{1,5})?", re.ASCII)
_CA_HASH: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
# Labels below these domains a kubelet may set of itself; of all others of Kubernetes only those listed.
_KUBELETS: Final = ("kubelet.kubernetes.io", "node.kubernetes.io")
_ALLOWED: Final = frozenset(
    {names.ARCH_LABEL, names.OS_LABEL, names.INSTANCE_TYPE_LABEL, names.ZONE_LABEL, names.REGION_LABEL}
)

# The mode in which the Secret has the user data whole.
RAW: Final = "raw"
KEYS: Final = {
    "k3s": frozenset({"server", "token", "caHash", "version", "prepare"}),
    "kubeadm": frozenset({"apiServerEndpoint", "caCertHashes", "token", "prepare"}),
    "talos": frozenset({"machineConfig"}),
    RAW: frozenset({"userData"}),
}
# Those whose servers take bootstrap tokens, and the group by which they let a machine in.
TOKEN_GROUPS: Final = {
    "k3s": "system:bootstrappers:k3s:default-node-token",
    "kubeadm": "system:bootstrappers:kubeadm:default-node-token",
}


class UserDataError(ValueError):
    """The user data cannot be made; the message says what is missing where. It holds no value of the Secret."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Vendor:
    """Whose machine it is: `number` are shell commands after which $id is its number, `largest` is in bytes."""

    name: str
    scheme: str
    number: tuple[str, ...]
    largest: int


HETZNER: Final = Vendor(name="Hetzner", scheme="hcloud://", number=(f"id=$({_CURL} {METADATA})",), largest=LARGEST)
LINODE: Final = Vendor(
    name="Linode",
    scheme="linode://",
    number=(
        f"token=$({_CURL} -X PUT -H 'Metadata-Token-Expiry-Seconds: 300' http://169.254.169.254/v1/token)",
        f"""id=$({_CURL} -H "Metadata-Token: $token" http://169.254.169.254/v1/instance | sed -n 's/^id: //p')""",
        'test -n "$id"',
    ),
    largest=16 * 1024,
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    """One machine that is to join. `credential` is its own token, empty where it has none; `repr` hides both."""

    name: str
    labels: Mapping[str, str]
    taints: Sequence[Taint]
    max_pods: int
    values: Mapping[str, str] = dataclasses.field(repr=False)
    credential: str = dataclasses.field(default="", repr=False)
    vendor: Vendor = HETZNER


def own_credential(asked: UserData, values: Mapping[str, str]) -> str:
    """The group for which each machine gets a token of its own; empty where machines share one or need none."""
    return "" if values.get("token", "").strip() else TOKEN_GROUPS.get(asked.mode, "")


def render(asked: UserData, joining: Joining) -> str:
    """The user data. `UserDataError` where the Secret lacks something or the whole is too long."""
    unknown = sorted(joining.values.keys() - KEYS[asked.mode])
    if unknown:
        known = ", ".join(sorted(KEYS[asked.mode]))
        raise UserDataError(
            f"Secret {asked.secret_ref.name} has key {unknown[0]}, which mode {asked.mode} does not know: use {known}"
        )
    external = asked.cloud_provider == "external"
    match asked.mode:
        case "k3s":
            made = _k3s(asked, joining, external=external)
        case "kubeadm":
            made = _kubeadm(asked, joining, external=external)
        case "talos":
            made = _talos(asked, joining, external=external)
        case _:
            made = _value(asked, joining, "userData")
    size = len(made.encode())
    if size > joining.vendor.largest:
        raise UserDataError(
            f"Secret {asked.secret_ref.name} makes user data of {size} bytes for {joining.name}, and"
            f" {joining.vendor.name} takes {joining.vendor.largest}: shorten what the Secret holds"
        )
    return made


def _k3s(asked: UserData, joining: Joining, *, external: bool) -> str:
    server = _value(asked, joining, "server").strip()
    if not server.startswith("https://") or not _ADDRESS.fullmatch(server.removeprefix("https://").rstrip("/")):
        raise UserDataError(
            f"Secret {asked.secret_ref.name}, key server: must be an address such as https://10.0.0.2:6443"
        )
    token = joining.values.get("token", "").strip() or joining.credential
    ca_hash = joining.values.get("caHash", "").strip().lower().removeprefix("sha256:")
    if ca_hash and not _CA_HASH.fullmatch(ca_hash):
        raise UserDataError(f"Secret {asked.secret_ref.name}, key caHash: must be 64 hexadecimal digits")
    if ca_hash and not token.startswith("K10"):
        token = f"K10{ca_hash}::{token}"
    config: dict[str, Any] = {
        "server": server,
        "token": token,
        "node-name": joining.name,
        "node-label": _pairs(joining.labels),
        "node-taint": [_taint(taint) for taint in joining.taints],
        "kubelet-arg": [f"max-pods={joining.max_pods}", *(["cloud-provider=external"] if external else [])],
    }
    version = joining.values.get("version", "").strip()
    environment = ["INSTALL_K3S_EXEC=agent"]
    if version:
        environment.append(f"INSTALL_K3S_VERSION={shlex.quote(version)}")
    extra = "/etc/rancher/k3s/config.yaml.d"
    script = [
        f"mkdir -p {extra}",
        f"""printf 'kubelet-arg+:\\n- provider-id={joining.vendor.scheme}%s\\n' "$id" > {extra}/50-provider-id.yaml""",
        "if command -v k3s >/dev/null 2>&1; then export INSTALL_K3S_SKIP_DOWNLOAD=true; fi",
        # Not in one pipe: that would end as the installer does, also where there is none.
        "installer=$(mktemp)",
        'curl -sSfL --retry 5 --retry-delay 2 https://get.k3s.io > "$installer"',
        'test -s "$installer"',
        f"""{" ".join(environment)} sh - < "$installer\"""",
    ]
    return _cloud_config({"/etc/rancher/k3s/config.yaml": _yaml(config)}, joining, script)


def _kubeadm(asked: UserData, joining: Joining, *, external: bool) -> str:
    endpoint = _value(asked, joining, "apiServerEndpoint").strip()
    if not _ADDRESS.fullmatch(endpoint):
        raise UserDataError(
            f"Secret {asked.secret_ref.name}, key apiServerEndpoint: must be HOST:PORT, such as 10.0.0.2:6443"
        )
    hashes = [line.strip() for line in _value(asked, joining, "caCertHashes").replace(",", "\n").splitlines()]
    hashes = [line for line in hashes if line]
    if not hashes or any(not _CA_HASH.fullmatch(line.removeprefix("sha256:")) for line in hashes):
        raise UserDataError(
            f"Secret {asked.secret_ref.name}, key caCertHashes: must be sha256: and 64 hexadecimal digits, one a line"
        )
    arguments = {
        "node-labels": ",".join(_pairs(joining.labels)),
        "provider-id": f"{joining.vendor.scheme}{NUMBER}",
        "max-pods": str(joining.max_pods),
        **({"cloud-provider": "external"} if external else {}),
    }
    config = {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "JoinConfiguration",
        "discovery": {
            "bootstrapToken": {
                "apiServerEndpoint": endpoint,
                "token": joining.values.get("token", "").strip() or joining.credential,
                "caCertHashes": [f"sha256:{line.removeprefix('sha256:')}" for line in hashes],
            }
        },
        "nodeRegistration": {
            "name": joining.name,
            "taints": [
                {"key": taint.key, **({"value": taint.value} if taint.value else {}), "effect": taint.effect}
                for taint in joining.taints
            ],
            "kubeletExtraArgs": [{"name": name, "value": value} for name, value in arguments.items() if value],
        },
    }
    path = "/etc/kubernetes/growth-join.yaml"
    script = [
        f"""sed -i "s/{NUMBER}/$id/" {path}""",
        # What an attempt left behind refuses the next one.
        f"kubeadm join --config {path} || {{ kubeadm reset --force; exit 1; }}",
        f"rm -f {path}",
    ]
    return _cloud_config({path: _yaml(config)}, joining, script)


def _talos(asked: UserData, joining: Joining, *, external: bool) -> str:
    """The Secret's document with what concerns this machine. Further documents of it are passed on."""
    if not external:
        raise UserDataError(
            "spec.userData.cloudProvider: Talos cannot tell a kubelet its provider ID: use external, with the vendor's cloud"
            " controller manager in the cluster"
        )
    try:
        documents = [each for each in yaml.safe_load_all(_value(asked, joining, "machineConfig")) if each is not None]
    except yaml.YAMLError:
        documents = []
    found = [each for each in documents if isinstance(each, dict) and isinstance(each.get("machine"), dict)]
    if len(found) != 1 or len(documents) != sum(isinstance(each, dict) for each in documents):
        raise UserDataError(
            f"Secret {asked.secret_ref.name}, key machineConfig: is no machine configuration of Talos: make it with"
            " `talosctl gen config`, and take worker.yaml"
        )
    machine = found[0]["machine"]
    if machine.get("type") not in {"worker", "join"}:
        raise UserDataError(
            f"Secret {asked.secret_ref.name}, key machineConfig: must be of a worker (machine.type: worker)"
        )
    kubelet = _part(asked, machine, "kubelet")
    _part(asked, machine, "network")["hostname"] = joining.name
    _part(asked, machine, "nodeLabels").update(joining.labels)
    _part(asked, kubelet, "extraArgs")["cloud-provider"] = "external"
    extra = _part(asked, kubelet, "extraConfig")
    extra["maxPods"] = joining.max_pods
    extra["registerWithTaints"] = [
        {"key": taint.key, **({"value": taint.value} if taint.value else {}), "effect": taint.effect}
        for taint in joining.taints
    ]
    return yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True)


def _part(asked: UserData, parent: dict[str, Any], field: str) -> dict[str, Any]:
    held = parent.get(field)
    if held is None:
        held = parent[field] = {}
    if not isinstance(held, dict):
        raise UserDataError(f"Secret {asked.secret_ref.name}, key machineConfig: {field} is no mapping")
    return held


def _cloud_config(files: Mapping[str, str], joining: Joining, script: Sequence[str]) -> str:
    prepare = joining.values.get("prepare", "").strip()
    lines = [
        "#!/bin/sh",
        *_ATTEMPTS,
        "set -eu",
        *joining.vendor.number,
        *([prepare] if prepare else []),
        *script,
    ]
    document = {
        "hostname": joining.name,
        "preserve_hostname": False,
        "write_files": [
            *(
                {"path": path, "permissions": "0600", "owner": "root:root", "content": text}
                for path, text in files.items()
            ),
            {"path": JOIN_SCRIPT, "permissions": "0700", "owner": "root:root", "content": "\n".join(lines) + "\n"},
        ],
        "runcmd": [[JOIN_SCRIPT]],
    }
    return f"#cloud-config\n{_yaml(document)}"


def kubelets_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """The labels that a kubelet may give itself; the rest is laid on the Node when it registers."""

    def allowed(key: str) -> bool:
        domain = key.rpartition("/")[0]
        if domain not in {"kubernetes.io", "k8s.io"} and not domain.endswith((".kubernetes.io", ".k8s.io")):
            return True
        return key in _ALLOWED or any(domain == each or domain.endswith(f".{each}") for each in _KUBELETS)

    return {key: value for key, value in sorted(labels.items()) if allowed(key)}


def _value(asked: UserData, joining: Joining, key: str) -> str:
    value = joining.values.get(key, "")
    if not value.strip():
        raise UserDataError(f"Secret {asked.secret_ref.name} has no key {key}, which mode {asked.mode} needs")
    return value


def _pairs(labels: Mapping[str, str]) -> list[str]:
    return [f"{key}={value}" for key, value in sorted(labels.items())]


def _taint(taint: Taint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def _yaml(value: Any) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=1000)
