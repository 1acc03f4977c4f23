"""Writing the status of requests and removals: the phase, and what happened, the newest twenty events."""

from collections.abc import Sequence
from typing import Any

from growth.api.growthpools import StoryEvent
from growth.api.kinds import Json, Kind
from growth.controllers.growth.progress import STORY
from growth.kube.api import Api
from growth.kube.changes import change
from growth.kube.errors import Conflict
from growth.units import print_time


async def write(
    api: Api, kind: Kind[Any], raw: Json, *, phase: str, events: Sequence[StoryEvent] = (), fields: Json | None = None
) -> Json:
    """The object after the write. `raw` is what the server just gave: `Conflict` where somebody was first.

    Of `fields`, those that are None go.
    """
    known = raw

    def edit(draft: Json) -> None:
        if draft["metadata"]["resourceVersion"] != known["metadata"]["resourceVersion"]:
            raise Conflict(f"{kind.kind} {draft['metadata']['name']} changed meanwhile")
        status = draft.setdefault("status", {})
        status["phase"] = phase
        for key, value in (fields or {}).items():
            if value is None:
                status.pop(key, None)
            else:
                status[key] = value
        if events:
            status["events"] = [*(status.get("events") or []), *map(_told, events)][-STORY:]

    return await change(api, kind, raw["metadata"]["name"], edit, subresource="status", known=raw)


def _told(event: StoryEvent) -> Json:
    told = {"at": print_time(event.at), "name": event.name}
    return {**told, "reason": event.reason} if event.reason else told
