"""Events: what is told to people beside the object that it concerns.

The core form is the one that every tool shows; the server serves the same objects as `events.k8s.io/v1`.
"""

import datetime as dt
from typing import Any, Final

from growth.api.kinds import Kind
from growth.api.meta import ObjectMeta, ObjectReference, Struct

NORMAL: Final = "Normal"
WARNING: Final = "Warning"


class EventSource(Struct, frozen=True):
    component: str = ""
    host: str = ""


class EventSeries(Struct, frozen=True):
    count: int = 0
    last_observed_time: dt.datetime | None = None


class Event(Struct, frozen=True):
    """Repetitions are told by `count` and `last_timestamp` (old writers) or by `event_time` and `series` (new ones)."""

    metadata: ObjectMeta = ObjectMeta()
    involved_object: ObjectReference = ObjectReference()
    type: str = ""
    reason: str = ""
    message: str = ""
    action: str = ""
    count: int = 0
    first_timestamp: dt.datetime | None = None
    last_timestamp: dt.datetime | None = None
    event_time: dt.datetime | None = None
    series: EventSeries | None = None
    related: ObjectReference | None = None
    source: EventSource = EventSource()
    reporting_component: str = ""
    reporting_instance: str = ""


def regarding(kind: Kind[Any], metadata: ObjectMeta) -> ObjectReference:
    """The object that an event is about."""
    return ObjectReference(
        api_version=kind.api_version,
        kind=kind.kind,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
    )


EVENT: Final = Kind("", "v1", "Event", "events", namespaced=True, type=Event)
