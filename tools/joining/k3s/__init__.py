"""k3s' own agent command: the flags that it has, and how it reads a configuration file; nothing of it is started.

The Go program beside this file is built once into the cache (`tools.gobuild`). It has a go.mod of its own, since k3s
pins other versions than kubeadm and Talos do. Its k3s is older than the Kubernetes of `tools.controlplane`: a flag
that k3s has dropped since then is still taken here, one that it has got since then is not.
"""

import dataclasses
import pathlib
import subprocess
import tempfile
from typing import Final

from tools.gobuild import Build, keyed_folder

HERE: Final = pathlib.Path(__file__).parent
PROGRAM: Final = "k3s-agent"
FLAGS: Final = ("-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags=-s -w")


@dataclasses.dataclass(frozen=True, slots=True)
class Agent:
    """What an agent made of its configuration: its complaint (empty for none), and the arguments of its kubelet."""

    complaint: str
    kubelet: tuple[str, ...]


def build() -> pathlib.Path:
    """The program, building it where it is missing."""
    parts = [(HERE / name).read_bytes() for name in ("go.mod", "go.sum", "main.go")]
    made = Build(
        name="k3s",
        module=HERE,
        programs={PROGRAM: "."},
        target=keyed_folder("k3s", (*parts, " ".join(FLAGS).encode())),
        flags=FLAGS,
        expected="once; about a minute",
    )
    return made.run() / PROGRAM


def flags() -> frozenset[str]:
    """Every name that a flag of the agent has, aliases too."""
    done = subprocess.run([str(build())], env={}, capture_output=True, text=True, check=True)
    return frozenset(done.stdout.split())


def agent(config: str, *later: str) -> Agent:
    """An agent with this configuration file, and these after it in the folder of additions."""
    with tempfile.TemporaryDirectory() as scratch:
        main = pathlib.Path(scratch) / "config.yaml"
        main.write_text(config)
        additions = main.with_name("config.yaml.d")
        additions.mkdir()
        for number, each in enumerate(later):
            (additions / f"{number:02}.yaml").write_text(each)
        # Without an environment, since an agent takes settings out of it too.
        done = subprocess.run([str(build()), str(main)], env={}, capture_output=True, text=True, check=False)
    if done.returncode:
        return Agent(complaint=done.stderr.strip() or "it failed without a word", kubelet=())
    return Agent(complaint="", kubelet=tuple(done.stdout.splitlines()))
