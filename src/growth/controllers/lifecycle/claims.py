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

    async def fresh(self, claim: NodeClaim) -> NodeClaim | None:
        """The claim as the server has it now; None where it is gone."""
        try:
            found = await self._api.get(NODE_CLAIM, claim.metadata.name)
        except NotFound:
            return None
        return found if found.metadata.uid == claim.metadata.uid else None

    async def change(self, claim: NodeClaim, edit: Edit) -> NodeClaim:
        return await self._changed(claim, edit, subresource="")

    async def change_status(self, claim: NodeClaim, edit: Edit) -> NodeClaim:
        return await self._changed(claim, edit, subresource="status")

    async def delete(self, claim: NodeClaim) -> bool:
        """Deletes the claim as it was just read; whether it was we who did it."""
        metadata = claim.metadata
        with contextlib.suppress(NotFound):
            await self._api.delete(NODE_CLAIM, metadata.name, uid=metadata.uid, revision=metadata.resource_version)
            return True
        return False

    async def _changed(self, claim: NodeClaim, edit: Edit, *, subresource: str) -> NodeClaim:
        def guarded(draft: Json) -> None:
            if draft["metadata"]["uid"] != claim.metadata.uid:
                raise Conflict(f"another NodeClaim is called {claim.metadata.name} by now")
            edit(draft)

        raw = await change(self._api, NODE_CLAIM, claim.metadata.name, guarded, subresource=subresource)
        return convert(raw, NodeClaim)
