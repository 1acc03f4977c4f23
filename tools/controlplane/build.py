"""Builds the programs of the control plane, once. Takes some ten minutes with empty Go caches and says how far it is."""

import os
import pathlib

from tools.controlplane.programs import HERE, PACKAGES, folder, go_flags, missing
from tools.gobuild import Build, BuildError


def build() -> pathlib.Path:
    """The folder with every program, building those that are missing. Two callers at once: the second one waits."""
    target = folder()
    if not missing():
        return target
    if os.environ.get("KUBEBUILDER_ASSETS"):
        raise BuildError(
            f"KUBEBUILDER_ASSETS={target} lacks {', '.join(missing())}; add them there or unset it to build them"
        )
    return Build(
        name="controlplane",
        module=HERE,
        programs=PACKAGES,
        target=target,
        flags=tuple(go_flags()),
        expected="once; about ten minutes",
    ).run()
