"""docs/benchmarks.md: every command that repeats a figure is one that exists, with the options that it names."""

import argparse
import importlib
import pathlib
import pkgutil
import re
import shlex

import pytest

import bench
import growth

PAGE = (pathlib.Path(growth.__file__).parents[2] / "docs/benchmarks.md").read_text()
COMMANDS = sorted({each for each in re.findall(r"`python -m bench ([^`]*)`", PAGE) if "NAME" not in each})
# They test what is simulated or built; what they print is no figure of Growth's.
WITHOUT_FIGURES = {"day"}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_can_be_run(command: str) -> None:
    """The benchmark's own parser takes it."""
    name, *arguments = shlex.split(command)
    parser = argparse.ArgumentParser()
    importlib.import_module(f"bench.{name}").add_arguments(parser)
    parser.parse_args(arguments)


def test_every_benchmark_has_its_row() -> None:
    """A figure that was never seen is told as such; what is left out here would look as if it were fine."""
    modules = [found.name for found in pkgutil.iter_modules(bench.__path__) if not found.ispkg]
    measuring = {
        name for name in modules if name != "__main__" and hasattr(importlib.import_module(f"bench.{name}"), "measure")
    }
    assert {command.split(maxsplit=1)[0] for command in COMMANDS} == measuring - WITHOUT_FIGURES
