"""Rates of faults as the network understands them, and the network's words for what struck."""

from collections.abc import Mapping
from typing import Final

from growth.sim.network import Faults

# What the network says struck, and which kind that is.
KINDS: Final[Mapping[str, str]] = {
    "refused 409": "conflict",
    "refused 429": "throttled",
    "refused 500": "server-error",
    "refused 502": "server-error",
    "refused 503": "server-error",
    "refused 504": "server-error",
    "refused 410": "gone",
    "unreachable": "unreachable",
    "lost request": "lost-request",
    "lost answer": "lost-answer",
    "broken answer": "lost-answer",
    "delayed": "late-write",
    "watch cut": "watch-cut",
    "watch gone": "gone",
    "watch silent": "watch-silent",
    "event late": "watch-late",
    "event repeated": "watch-repeat",
}
# No request is on its way for longer: less than the difference between a name's last use and its release.
LATEST_WRITE_SECONDS: Final = 20.0
HOUR_SECONDS: Final = 3600.0


def network_faults(rates: Mapping[str, float]) -> Faults:
    """The network of a process of the autoscaler at these rates."""
    breaks = rates.get("watch-cut", 0.0) + rates.get("gone", 0.0)
    lost = rates.get("lost-answer", 0.0)
    return Faults(
        conflict=rates.get("conflict", 0.0),
        throttled=rates.get("throttled", 0.0),
        server_error=rates.get("server-error", 0.0),
        unreachable=rates.get("unreachable", 0.0),
        lost_request=rates.get("lost-request", 0.0),
        lost_answer=lost / 2,
        broken_answer=lost / 2,
        delayed_write=rates.get("late-write", 0.0),
        write_delay=(1.0, LATEST_WRITE_SECONDS),
        watch_cut_seconds=_mean(breaks),
        watch_gone=rates.get("gone", 0.0) / breaks if breaks else 0.0,
        watch_stall_seconds=_mean(rates.get("watch-silent", 0.0)),
        late_event=rates.get("watch-late", 0.0),
        repeated_event=rates.get("watch-repeat", 0.0),
    )


def _mean(per_hour: float) -> float:
    return HOUR_SECONDS / per_hour if per_hour else float("inf")
