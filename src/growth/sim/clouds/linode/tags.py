"""Tags: texts of 3 to 50 characters."""

from collections.abc import Sequence
from typing import Final

from growth.sim.clouds.linode.wire import invalid

SHORTEST: Final = 3
LONGEST: Final = 50


def checked(value: Sequence[str]) -> tuple[str, ...]:
    """Each once, in their order."""
    for each in value:
        if not SHORTEST <= len(each) <= LONGEST:
            raise invalid("tags", f"Tag length must be {SHORTEST}-{LONGEST} characters")
    return tuple(dict.fromkeys(value))
