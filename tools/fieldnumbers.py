"""Writes the table of the fields that built-in kinds have, for the server in process: `python -m tools.fieldnumbers MODULES`.

MODULES is a Go module folder (`$(go env GOMODCACHE)/k8s.io`) that holds `api@VERSION` and `apimachinery@VERSION`, the
version being the one whose behaviour the server follows. Only messages that a served kind reaches are kept.
"""

import re
import sys
from pathlib import Path

VERSION = "v0.36.3"
TARGET = Path(__file__).parent.parent / "src/growth/kube/memory/fields.txt"
FILES = (
    "apimachinery@{}/pkg/apis/meta/v1",
    "apimachinery@{}/pkg/util/intstr",
    "apimachinery@{}/pkg/api/resource",
    "apimachinery@{}/pkg/runtime",
    "api@{}/core/v1",
    "api@{}/apps/v1",
    "api@{}/batch/v1",
    "api@{}/policy/v1",
    "api@{}/coordination/v1",
    "api@{}/scheduling/v1",
    "api@{}/storage/v1",
    "api@{}/rbac/v1",
    "api@{}/authorization/v1",
    "api@{}/authentication/v1",
    "api@{}/autoscaling/v1",
)
ROOTS = (
    *(
        "Pod",
        "Node",
        "Namespace",
        "ConfigMap",
        "Secret",
        "Service",
        "ServiceAccount",
        "Event",
        "Binding",
        "PodTemplate",
    ),
    *("PersistentVolumeClaim", "PersistentVolume", "StorageClass", "CSINode", "VolumeAttachment"),
    *("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "Scale"),
    *("Lease", "PodDisruptionBudget", "Eviction", "PriorityClass", "DeleteOptions"),
    *("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
    *("SelfSubjectAccessReview", "SelfSubjectRulesReview", "SelfSubjectReview"),
)
SCALARS = {"string": "s", "int32": "i", "int64": "i", "bool": "b", "double": "d", "bytes": "y"}
# Read by code of their own.
SPECIAL = {"Time", "MicroTime", "Quantity", "IntOrString", "FieldsV1", "RawExtension"}
# Members whose fields stand in JSON beside those of the message that holds them.
INLINE = {"volumeSource", "handler", "persistentVolumeSource", "localObjectReference", "ephemeralContainerCommon"}

FIELD = re.compile(
    r"^\s+(?:(optional|repeated)\s+)?(?:map<string,\s*([\w.]+)>|([\w.]+))\s+(\w+)\s*=\s*(\d+)", re.MULTILINE
)


def messages(modules: Path) -> dict[str, list[tuple[int, str, str]]]:
    """Of each message the number, JSON name and coded type of its fields."""
    found: dict[str, list[tuple[int, str, str]]] = {}
    for place in FILES:
        text = (modules / place.format(VERSION) / "generated.proto").read_text()
        text = re.sub(r"//[^\n]*", "", text)
        for name, body in re.findall(r"^message (\w+) \{(.*?)^\}", text, re.MULTILINE | re.DOTALL):
            if name in found:
                continue  # the earlier file counts: meta before the groups
            fields = []
            for label, mapped, plain, field, number in FIELD.findall(body):
                kind = (mapped or plain).rpartition(".")[2]
                code = SCALARS.get(kind, kind)
                prefix = "%" if mapped else "*" if label == "repeated" else "~" if field in INLINE else ""
                fields.append((int(number), field, prefix + code))
            found[name] = sorted(fields)
    return found


def main(modules: str) -> None:
    known = messages(Path(modules))
    wanted: list[str] = list(ROOTS)
    for name in wanted:
        for _, _, code in known[name]:
            inner = code.lstrip("%*~")
            if inner not in wanted and inner not in SPECIAL and len(inner) > 1:
                wanted.append(inner)
    lines = [
        f"{name}: " + " ".join(f"{number}={field}:{code}" for number, field, code in known[name])
        for name in sorted(wanted)
    ]
    TARGET.write_text("\n".join(lines) + "\n")
    print(f"{len(lines)} messages, {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main(sys.argv[1])
