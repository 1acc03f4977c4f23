"""docs/fields.md says of every field what it does, or that nothing comes of it yet."""

import pathlib
import re
from typing import Any

import pytest

from growth.api import buffers, karpenter, linodeclasses, names, nodeclasses, overlays
from growth.api.kinds import Kind
from tests.unit.test_field_names import FACTS

PAGE = (pathlib.Path(__file__).parents[2] / "docs" / "fields.md").read_text()
KINDS = (
    karpenter.NODE_POOL,
    karpenter.NODE_CLAIM,
    nodeclasses.KWOK_NODE_CLASS,
    nodeclasses.HETZNER_NODE_CLASS,
    linodeclasses.LINODE_NODE_CLASS,
    buffers.CAPACITY_BUFFER,
    overlays.NODE_OVERLAY,
)


def told(kind: Kind[Any]) -> set[str]:
    """The fields that stand in the first column of the kind's table."""
    (section,) = re.findall(
        rf"^## {kind.kind} \(`{re.escape(kind.api_version)}`\)\n(.*?)(?=^## )", PAGE, re.MULTILINE | re.DOTALL
    )
    cells = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    return {field for cell in cells for field in re.findall(r"`([^`]+)`", cell)}


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_field_is_told_of(kind: Kind[Any]) -> None:
    """Each field stands there itself, or a field that it is part of; no other field does."""
    fields = FACTS[kind]
    leaves = {field for field in fields if not any(other.startswith(f"{field}.") for other in fields)}
    assert told(kind) <= fields
    untold = {field for field in leaves if not any(f"{field}.".startswith(f"{each}.") for each in told(kind))}
    assert untold == set()


def test_the_strategy_of_buffers_is_named() -> None:
    """Who writes a buffer finds the word that we serve."""
    assert f"`{names.ACTIVE_CAPACITY_STRATEGY}`" in PAGE
