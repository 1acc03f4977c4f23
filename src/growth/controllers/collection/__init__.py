"""Leaks, both ways: machines without a claim, claims without a machine. What may go is `growth.planning.collecting`.

Nothing is concluded from a list that failed or from the cache. A sweep that would take many takes none: its list stands
in the ConfigMap `growth-collection` until somebody confirms it or it is no longer true.
"""

from growth.controllers.collection.controller import METRICS, Collection

__all__ = ["METRICS", "Collection"]
