"""Reading and writing one claim, and no other that may have its name by now."""

import contextlib

from growth.api.decoding import convert
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.api.kinds import Json
from growth.kube.api import Api
from growth.kube.changes import Edit, change
from growth.kube.errors import Conflict, NotFound


class Claims:
    """Access to claims by the object that a decision was made on. `Conflict` where the name means another one."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def fresh(self, claim: NodeClaim) -> Json | None:
        """The claim as the server has it now, whole; None where it is gone."""
        try:
            found = await self._api.get(NODE_CLAIM.raw, claim.metadata.name)
        except NotFound:
            return None
        return found if found["metadata"]["uid"] == claim.metadata.uid else None

    async def change(self, claim: NodeClaim, edit: Edit, *, known: Json | None = None) -> Json:
        """The claim after the edit, whole. `known` is what the server just gave, if it did."""
        return await self._changed(claim, edit, subresource="", known=known)

    async def change_status(self, claim: NodeClaim, edit: Edit, *, known: Json | None = None) -> Json:
        return await self._changed(claim, edit, subresource="status", known=known)

    async def delete(self, claim: NodeClaim) -> bool:
        """Deletes the claim as it was just read; whether it was we who did it."""
        metadata = claim.metadata
        with contextlib.suppress(NotFound):
            await self._api.delete(NODE_CLAIM, metadata.name, uid=metadata.uid, revision=metadata.resource_version)
            return True
        return False

    async def _changed(self, claim: NodeClaim, edit: Edit, *, subresource: str, known: Json | None) -> Json:
        def guarded(draft: Json) -> None:
            if draft["metadata"]["uid"] != claim.metadata.uid:
                raise Conflict(f"another NodeClaim is called {claim.metadata.name} by now")
            edit(draft)

        return await change(self._api, NODE_CLAIM, claim.metadata.name, guarded, subresource=subresource, known=known)


def read(raw: Json) -> NodeClaim:
    return convert(raw, NodeClaim)
