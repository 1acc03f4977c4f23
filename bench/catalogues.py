"""Instance types for benchmarks, as the JSON that Karpenter's KWOK provider and `growth plan --instance-types` read.

Each entry has `name`, `architecture`, `operatingSystems`, `resources` and `offerings` (`Price`, `Available`,
`Requirements`). Prices are per hour.
"""

import json
import os
import pathlib
from collections.abc import Container, Iterable
from typing import Final

from growth.api.kinds import Json

DATA_SETTING: Final = "GROWTH_BENCH_DATA"

CAPACITY_TYPE: Final = "karpenter.sh/capacity-type"
ZONE: Final = "topology.kubernetes.io/zone"

# What the fake provider of Karpenter's own benchmark offers for each of its types, all at one price.
FAKE_OFFERINGS: Final = (
    ("spot", "test-zone-1"),
    ("spot", "test-zone-2"),
    ("on-demand", "test-zone-1"),
    ("on-demand", "test-zone-2"),
    ("on-demand", "test-zone-3"),
)
GIB: Final = 1 << 30

KWOK_CPUS: Final = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256)
KWOK_FAMILIES: Final = {"c": 2, "s": 4, "m": 8}  # GiB of memory for each cpu
KWOK_ZONES: Final = ("test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d")
KWOK_SPOT_SHARE: Final = 0.7
KWOK_MAX_PODS: Final = 1024


class DataMissingError(Exception):
    """A data file that is not part of this repository is not there; the message says which and how to name it."""


def fake_types(count: int = 400) -> list[Json]:
    """The types of Karpenter's own scheduling benchmark: the i-th has i cpus, 2i GiB and room for 10i pods."""
    return [
        _instance_type(
            f"fake-it-{i - 1}",
            systems=("linux", "windows", "darwin"),
            resources={"cpu": str(i), "memory": f"{2 * i}Gi", "pods": str(10 * i)},
            offerings=[(kind, zone, 0.1 * i + 0.1 * 2 * i * GIB / 1e9) for kind, zone in FAKE_OFFERINGS],
        )
        for i in range(1, count + 1)
    ]


def kwok_types() -> list[Json]:
    """The 144 types of Karpenter's KWOK provider: 12 sizes, 3 families, 2 systems, 2 architectures."""
    return [
        _kwok_type(cpu, family, system=system, architecture=architecture)
        for cpu in KWOK_CPUS
        for family in KWOK_FAMILIES
        for system in ("linux", "windows")
        for architecture in ("amd64", "arm64")
    ]


def aws_types(families: Container[str] | None = None) -> list[Json]:
    """Types and prices of AWS us-west-2 from `aws_instance_types.json` in the data folder, sorted by name.

    The file has the KWOK provider's format already. `families` keeps those whose first letter is among them: `"cmr"` are
    compute, general purpose and memory. `DataMissingError` where the file is not there.
    """
    entries: list[Json] = json.loads(data_file("aws_instance_types.json").read_text())
    kept = [entry for entry in entries if families is None or entry["name"][0] in families]
    return sorted(kept, key=lambda entry: str(entry["name"]))


def data_file(name: str) -> pathlib.Path:
    """A file of the data folder, which `GROWTH_BENCH_DATA` names."""
    folder = os.environ.get(DATA_SETTING)
    if not folder:
        raise DataMissingError(f"{name} is not part of this repository; set {DATA_SETTING} to the folder that holds it")
    path = pathlib.Path(folder) / name
    if not path.is_file():
        raise DataMissingError(f"{path} is not there; put {name} into the folder that {DATA_SETTING} names")
    return path


def _kwok_type(cpu: int, family: str, *, system: str, architecture: str) -> Json:
    memory = cpu * KWOK_FAMILIES[family]
    price = 0.025 * cpu + 0.001 * memory * GIB / 1e9
    return _instance_type(
        f"{family}-{cpu}x-{architecture}-{system}",
        architecture=architecture,
        systems=(system,),
        resources={
            "cpu": str(cpu),
            "ephemeral-storage": "20Gi",
            # As Kubernetes prints it: the label karpenter.kwok.sh/instance-memory has this very text.
            "memory": f"{memory // 1024}Ti" if memory % 1024 == 0 else f"{memory}Gi",
            "pods": str(min(16 * cpu, KWOK_MAX_PODS)),
        },
        offerings=[
            (kind, zone, price * share)
            for zone in KWOK_ZONES
            for kind, share in (("spot", KWOK_SPOT_SHARE), ("on-demand", 1.0))
        ],
    )


def _instance_type(
    name: str,
    *,
    resources: dict[str, str],
    offerings: Iterable[tuple[str, str, float]],
    architecture: str = "amd64",
    systems: tuple[str, ...] = ("linux",),
) -> Json:
    return {
        "name": name,
        "architecture": architecture,
        "operatingSystems": list(systems),
        "resources": resources,
        "offerings": [
            {
                "Price": price,
                "Available": True,
                "Requirements": [
                    {"key": CAPACITY_TYPE, "operator": "In", "values": [kind]},
                    {"key": ZONE, "operator": "In", "values": [zone]},
                ],
            }
            for kind, zone, price in offerings
        ],
    }
