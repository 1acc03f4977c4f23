"""Lists read whole: what the server itself says now, whatever a cache holds."""

from typing import Final, TypeVar

from growth.api.kinds import Kind
from growth.kube.api import Api
from growth.kube.errors import Gone

T = TypeVar("T")

PAGE: Final = 500


async def every(api: Api, kind: Kind[T], *, namespace: str = "", fields: str = "", labels: str = "") -> list[T]:
    """All objects of the kind that fields and labels select, of one revision; an error rather than a part of them."""
    found: list[T] = []
    limit, page = PAGE, ""
    while True:
        try:
            answer = await api.list(kind, namespace=namespace, fields=fields, labels=labels, limit=limit, page=page)
        except Gone:
            if not page:
                raise
            # The pages' revision was compacted away while we read: ask for all in one answer.
            found, limit, page = [], 0, ""
            continue
        found += answer.items
        page = answer.next
        if not page:
            return found
