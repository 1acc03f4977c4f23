"""The page docs/metrics.md, written from the declarations: `python -m growth.operator.metrics_page > docs/metrics.md`."""

import sys
from collections.abc import Iterable
from typing import Final

from growth.operator import metrics, parts, watchdog, wiring
from growth.telemetry.metrics import Declaration

# Everything that a scrape of a leader can have, beside what prometheus-client tells of the process.
CLAIMED: Final[tuple[Declaration, ...]] = (
    *parts.METRICS,
    *(watchdog.SYNCED, watchdog.UNSYNCED_SECONDS, watchdog.NODE_COUNT),
    *(wiring.LEADING, metrics.BUILD_INFO, metrics.KARPENTER_BUILD_INFO),
)

# Karpenter's metrics that we do not have, and why.
NOT_HERE: Final = {
    "karpenter_consolidation_moves_total": "Decisions tell of moves",
    "karpenter_consolidation_score": "`growth plan --consolidate` tells of scores",
    "karpenter_nodepools_cost_tracker_errors_total": "see `growth_nodepools_unpriced_nodes`",
}

HEAD: Final = """# Metrics

What `/metrics` of `growth run` serves. Names that Karpenter has keep its spelling, its labels and its meaning, so that
dashboards and alerts go on working; ours begin with `growth_`. Every name is there from the start, its series from the
first time that they are counted. Beside these there is what every process tells (`process_*`).

The label `nodepool` is a NodePool's name; `growth.dev/NAME` is a pool of our own API. Histograms have Karpenter's buckets.
`karpenter_pods_state` tells, in clusters of more than 5,000 pods, only of those that are not ready.

This page is made from the declarations beside the code that counts.
"""

TAIL: Final = """
Nor are those of Go's runtime and of its Kubernetes client libraries (`go_*`, `controller_runtime_*`, `workqueue_*`,
`rest_client_*`).
"""


def page() -> str:
    """The whole page."""
    ours = [each for each in CLAIMED if each.name.startswith("growth_")]
    theirs = [each for each in CLAIMED if not each.name.startswith("growth_")]
    missing = "".join(f"| `{name}` | {why} |\n" for name, why in sorted(NOT_HERE.items()))
    return "".join(
        (
            HEAD,
            "\n## Karpenter's\n\n",
            *_rows(theirs),
            "\n## Growth's own\n\n",
            *_rows(ours),
            "\n## Karpenter's that are not here\n\n| Metric | Why |\n|---|---|\n",
            missing,
            TAIL,
        )
    )


def _rows(metrics_: Iterable[Declaration]) -> list[str]:
    rows = ["| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n"]
    for each in sorted(metrics_, key=lambda one: one.name):
        labels = ", ".join(f"`{label}`" for label in each.labels) or "none"
        rows.append(f"| `{each.name}` | {type(each).__name__.lower()} | {labels} | {each.help} |\n")
    return rows


if __name__ == "__main__":
    sys.stdout.write(page())
