"""docs/events.md lists every reason by which something is told, and says of Karpenter's which do not occur."""

import pathlib
import re

from growth.api import names
from growth.controllers.lifecycle import strangers
from growth.controllers.pools import controller as pools

ROOT = pathlib.Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "events.md").read_text()
SOURCE = ROOT / "src" / "growth" / "controllers"


def karpenters() -> dict[str, str]:
    """The constants below «Reasons of events: Karpenter's», by name."""
    text = pathlib.Path(names.__file__).read_text()
    (block,) = re.findall(r"# --- Reasons of events: Karpenter's\n(.*?)\n# ---", text, re.DOTALL)
    return dict(re.findall(r'^([A-Z_]+): Final = "(\w+)"', block, re.MULTILINE))


def test_every_reason_of_karpenters_is_told_or_said_to_be_missing() -> None:
    """A reason stands in the table exactly when a controller uses it, else among those that do not occur yet."""
    table, missing = PAGE.split("Karpenter's that do not occur yet")
    code = "\n".join(path.read_text() for path in SOURCE.rglob("*.py"))
    for constant, word in karpenters().items():
        used = re.search(rf"\bnames\.{constant}\b|\"{word}\"", code) is not None
        assert (f"`{word}`" in table, f"`{word}`" in missing) == (used, not used), word


def test_reasons_of_our_own_are_told() -> None:
    """Whoever meets one finds it."""
    for word in (
        *(names.LAUNCH_TIMEOUT, names.REGISTRATION_TIMEOUT, names.INITIALIZATION_TIMEOUT, names.COLLECTION_HELD),
        *(names.NO_NODE_POOL, names.NODE_POOL_NOT_FOUND, names.BACK_OFF, names.UNMET, names.NODE_NOT_COMING),
        *(names.SCALE_DOWN_SCHEDULED, names.SCALE_DOWN_CANCELLED, names.COULD_NOT_REMOVE, names.REMOVAL_FAILED),
        *(names.LOST_WITH_MACHINE, names.BOUGHT_IN_VAIN),
        *(strangers.PROVIDER_ID_MISSING, strangers.NODE_CLAIM_NOT_FOUND, pools.NODE_CLASS_UNKNOWN),
    ):
        assert f"`{word}`" in PAGE
