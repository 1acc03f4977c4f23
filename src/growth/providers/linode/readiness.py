"""Node classes of Linode as they are used: read, checked against the cluster and the account, and refused in clear words.

A class is usable when its condition Ready says so of its present generation. One that nobody has judged yet is judged on
the spot, so that a new class need not be waited for.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from growth.api import names
from growth.api.clouds import NodeClassNotReady
from growth.api.conditions import FALSE, TRUE, find
from growth.api.karpenter import NodeClassReference
from growth.api.linodeclasses import LINODE_NODE_CLASS, LinodeNodeClass, LinodeNodeClassSpec
from growth.kube.api import Api
from growth.kube.errors import NotFound
from growth.kube.whole import every
from growth.ports import Clock
from growth.providers.http import Refused
from growth.providers.joining import Credentials
from growth.providers.linode import classes
from growth.providers.linode.classes import Problem
from growth.providers.linode.client import LinodeApi
from growth.providers.linode.failures import Meaning, meaning
from growth.providers.linode.holdings import INSTANCES, Home
from growth.providers.userdata import UserDataError

# A class that was read just now need not be read again for the next of a hundred purchases.
LOOK_SECONDS: Final = 1.0
# A refusal of the vendor that no check foresaw stands in the class' conditions for so long, and is then tried again.
COMPLAINT_SECONDS: Final = 300.0
REFUSED: Final = "Refused"
TOKEN_REFUSED: Final = "TokenRefused"  # noqa: S105 - a reason


class Readiness:
    """One per process. Raises `KubeError` and `CallError` where what it needs cannot be read."""

    def __init__(
        self,
        api: Api,
        cloud: LinodeApi,
        home: Callable[[], Awaitable[Home]],
        *,
        credentials: Credentials,
        clock: Clock,
    ) -> None:
        self._api = api
        self._cloud = cloud
        self._home = home
        self._credentials = credentials
        self._clock = clock
        self._read: dict[str, tuple[float, LinodeNodeClass]] = {}
        self._complaints: dict[str, tuple[int, float, Problem]] = {}
        self._token: tuple[float, Problem] | None = None

    async def classes(self) -> Sequence[LinodeNodeClass]:
        try:
            return await every(self._api, LINODE_NODE_CLASS)
        except NotFound:
            return ()  # the definition is not installed: there are none

    async def found(self, uses: NodeClassReference) -> LinodeNodeClass | None:
        """The class; None where there is none, or it is another cloud's."""
        if (uses.group, uses.kind) != (LINODE_NODE_CLASS.group, LINODE_NODE_CLASS.kind):
            return None
        now = self._clock.monotonic()
        known = self._read.get(uses.name)
        if known is not None and now - known[0] < LOOK_SECONDS:
            return known[1]
        try:
            found = await self._api.get(LINODE_NODE_CLASS, uses.name)
        except NotFound:
            self._read.pop(uses.name, None)
            return None
        self._read[uses.name] = (now, found)
        return found

    async def usable(self, uses: NodeClassReference) -> LinodeNodeClass:
        """The class, fit to make machines of. `NodeClassNotReady` says why it is not."""
        kind = LINODE_NODE_CLASS.kind
        if (uses.group, uses.kind) != (LINODE_NODE_CLASS.group, kind):
            raise NodeClassNotReady(
                f"{uses.kind} of group {uses.group} is not served by the Linode provider:"
                f" use {kind} of {LINODE_NODE_CLASS.group}"
            )
        found = await self.found(uses)
        if found is None:
            raise NodeClassNotReady(f"there is no {kind} {uses.name!r}")
        if found.metadata.deletion_timestamp is not None:
            raise NodeClassNotReady(f"{kind} {uses.name!r} is being deleted")
        ready = find(found.status.conditions, names.READY)
        if ready is not None and ready.observed_generation == found.metadata.generation:
            if ready.status == TRUE:
                return found
            if ready.status == FALSE:
                raise NodeClassNotReady(f"{kind} {uses.name!r} is not ready: {ready.message}")
        problem = next(iter(await self.problems(found)), None)
        if problem is not None:
            raise NodeClassNotReady(f"{kind} {uses.name!r} is not ready: {problem.message}")
        return found

    async def problems(self, node_class: LinodeNodeClass) -> Sequence[Problem]:
        """Everything that keeps machines of the class from being made, the most telling first."""
        now = self._clock.monotonic()
        if self._token is not None and self._token[0] > now:
            return [self._token[1]]
        home, spec = await self._home(), node_class.spec
        if home.tier == INSTANCES:
            found = list(classes.instance_problems(spec))
            found += await self._of_user_data(spec)
        else:
            found = list(classes.problems(spec, enterprise=home.enterprise))
        if home.enterprise and spec.lke_k8s_version:
            sold = await self._cloud.versions(home.tier)
            problem = classes.version_problem(spec, control_plane=home.k8s_version, sold=sold)
            found += [problem] if problem is not None else []
        takes_firewall = home.enterprise or home.tier == INSTANCES
        if takes_firewall and spec.firewall_id is not None and not await self._has_firewall(spec.firewall_id):
            found.append(
                Problem(
                    classes.NOT_FOUND,
                    f"spec.firewallID: the account has no firewall {spec.firewall_id}: make it, or name another",
                )
            )
        complaint = self._complaints.get(node_class.metadata.name)
        if complaint is not None and complaint[0] == node_class.metadata.generation and complaint[1] > now:
            found.append(complaint[2])
        return found

    async def _of_user_data(self, spec: LinodeNodeClassSpec) -> list[Problem]:
        try:
            await self._credentials.check(
                spec.user_data, max_pods=spec.kubelet.max_pods if spec.kubelet is not None else None
            )
        except UserDataError as error:
            return [Problem(classes.USER_DATA_INVALID, str(error))]
        return []

    async def _has_firewall(self, number: int) -> bool:
        try:
            await self._cloud.firewall(number)
        except Refused as error:
            if meaning(error) is Meaning.GONE:
                return False
            raise
        return True

    def complain(self, node_class: LinodeNodeClass, said: str) -> None:
        """The vendor refused a machine of the class for what it asks."""
        until = self._clock.monotonic() + COMPLAINT_SECONDS
        problem = Problem(REFUSED, f"Linode refuses machines of this class: {said}")
        self._complaints[node_class.metadata.name] = (node_class.metadata.generation, until, problem)

    def token_refused(self, said: str) -> None:
        self._token = (self._clock.monotonic() + COMPLAINT_SECONDS / 5, Problem(TOKEN_REFUSED, said))
