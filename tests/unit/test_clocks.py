"""The machine's clock that counts sleep: which one it is on which system."""

import sys
import time

import pytest

from growth import ports
from growth.ports import SystemClock


def test_the_boot_clock_of_linux() -> None:
    """It is the kernel's own, which goes on while the machine is suspended; the monotonic one does not."""
    if not hasattr(time, "CLOCK_BOOTTIME"):
        assert ports.COUNTING_SLEEP is None or sys.platform == "darwin"
        return
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert before <= SystemClock().boot_time() <= time.clock_gettime(time.CLOCK_BOOTTIME)


@pytest.mark.parametrize(
    ("platform", "clocks", "expected"),
    [
        ("linux", {"CLOCK_BOOTTIME": 7, "CLOCK_MONOTONIC": 1}, 7),
        ("openbsd7", {"CLOCK_BOOTTIME": 6, "CLOCK_MONOTONIC": 3}, 6),
        ("darwin", {"CLOCK_MONOTONIC": 6}, 6),
        ("win32", {}, None),
        ("freebsd13", {"CLOCK_MONOTONIC": 4}, None),
    ],
)
def test_which_clock_counts_sleep(
    platform: str, clocks: dict[str, int], expected: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The best that there is; where none is known the monotonic clock is taken."""
    monkeypatch.setattr(sys, "platform", platform)
    for name in ("CLOCK_BOOTTIME", "CLOCK_MONOTONIC"):
        if name in clocks:
            monkeypatch.setattr(time, name, clocks[name], raising=False)
        else:
            monkeypatch.delattr(time, name, raising=False)
    assert ports._counting_sleep() == expected


def test_without_such_a_clock_the_monotonic_one_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """On Windows it counts sleep by itself."""
    monkeypatch.setattr(ports, "COUNTING_SLEEP", None)
    assert abs(SystemClock().boot_time() - SystemClock().monotonic()) < 60.0
