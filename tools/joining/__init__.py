"""What machines join with, checked by the vendors' own code: kubeadm's configuration, the arguments of a kubelet, and
Talos' machine configuration. k3s has a program of its own, in `tools.joining.k3s`.

The Go program beside this file is built once into the cache (`tools.gobuild`).
"""

import pathlib
import subprocess
from typing import Final

from tools.gobuild import Build, keyed_folder

HERE: Final = pathlib.Path(__file__).parent
PROGRAM: Final = "joining"
FLAGS: Final = ("-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags=-s -w")


def build() -> pathlib.Path:
    """The program, building it where it is missing."""
    parts = [(HERE / name).read_bytes() for name in ("go.mod", "go.sum", "main.go")]
    made = Build(
        name="joining",
        module=HERE,
        programs={PROGRAM: "."},
        target=keyed_folder("joining", (*parts, " ".join(FLAGS).encode())),
        flags=FLAGS,
        expected="once; a few minutes",
    )
    return made.run() / PROGRAM


def complaint(vendor: str, document: str) -> str:
    """What the vendor finds wrong with the document; empty for nothing. A kubelet's is its arguments, one a line."""
    done = subprocess.run([str(build()), vendor], input=document, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stderr.strip() or "it failed without a word"
