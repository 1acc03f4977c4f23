"""Tags: texts of 3 to 50 characters."""

from typing import Any, Final

from growth.sim.clouds.linode.wire import invalid

SHORTEST: Final = 3
LONGEST: Final = 50


def checked(value: Any) -> tuple[str, ...]:
    """Each once, in their order."""
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise invalid("tags", "Tags must be a list of strings")
    for each in value:
        if not SHORTEST <= len(each) <= LONGEST:
            raise invalid("tags", f"Tag length must be {SHORTEST}-{LONGEST} characters")
    return tuple(dict.fromkeys(value))
