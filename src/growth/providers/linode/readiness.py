"""What keeps machines of a LinodeNodeClass from being made: the class by itself, the cluster, the account, and user data."""

from collections.abc import Awaitable, Callable
from typing import Final

from growth.api.linodeclasses import LINODE_NODE_CLASS, LinodeNodeClass, LinodeNodeClassSpec
from growth.kube.api import Api
from growth.ports import Clock
from growth.providers.http import CallError, Refused
from growth.providers.joining import Credentials
from growth.providers.linode import classes
from growth.providers.linode.client import LinodeApi
from growth.providers.linode.failures import Meaning, meaning
from growth.providers.linode.holdings import INSTANCES, Home
from growth.providers.nodeclasses import Problem
from growth.providers.readiness import Readiness

# For so long no class can be used after the token was refused.
TOKEN_SECONDS: Final = 60.0
FIREWALL_RIGHT: Final = (
    "spec.firewallID: the token may not read firewalls: give Growth one that has this right too (firewall:read_only), or leave"
    " the field out"
)
# What an image must be able to, that its machines read a cloud-config; and the modes of user data that are one.
CLOUD_INIT: Final = "cloud-init"
CLOUD_CONFIGS: Final = frozenset({"k3s", "kubeadm"})
WITHOUT_EFFECT: Final = "LKE makes its nodes itself, and these fields have no effect there"


class LinodeReadiness(Readiness[LinodeNodeClass]):
    def __init__(
        self,
        api: Api,
        cloud: LinodeApi,
        home: Callable[[], Awaitable[Home]],
        *,
        credentials: Credentials,
        clock: Clock,
    ) -> None:
        super().__init__(
            api,
            LINODE_NODE_CLASS,
            vendor="Linode",
            credentials=credentials,
            clock=clock,
            exchanges=cloud.others.exchanges,
            token_seconds=TOKEN_SECONDS,
        )
        self._cloud = cloud
        self._home = home
        self._of_images: dict[str, str] = {}  # by name: what was to be said of it

    async def _checked(self, node_class: LinodeNodeClass) -> list[Problem]:
        home, spec = await self._home(), node_class.spec
        if home.tier == INSTANCES:
            max_pods = spec.kubelet.max_pods if spec.kubelet is not None else None
            found = list(classes.instance_problems(spec))
            found += await self._of_user_data(spec.user_data, max_pods=max_pods)
            if spec.user_data is not None and not home.metadata:
                found.append(
                    Problem(
                        classes.UNSUPPORTED,
                        f"spec.userData is not possible in region {home.region}, which has no metadata service and gives machines"
                        " no user data: buy in another, with --linode-region, or use an image that joins by itself",
                    )
                )
        else:
            found = list(classes.problems(spec, enterprise=home.enterprise))
        if home.enterprise and spec.lke_k8s_version:
            sold, cluster = await self._cloud.versions(home.tier), await self._cloud.cluster(home.id)
            problem = classes.version_problem(spec, control_plane=cluster.k8s_version, sold=sold)
            found += [problem] if problem is not None else []
        takes_firewall = home.enterprise or home.tier == INSTANCES
        if takes_firewall and spec.firewall_id is not None:
            found += await self._of_firewall(spec.firewall_id)
        return found

    async def _remark(self, node_class: LinodeNodeClass) -> str:
        if (await self._home()).tier == INSTANCES:
            return classes.instance_remark(node_class.spec) or await self._of_image(node_class.spec)
        fields = classes.without_effect(node_class.spec)
        return f"{WITHOUT_EFFECT}: {', '.join(f'spec.{each}' for each in fields)}" if fields else ""

    async def _of_image(self, spec: LinodeNodeClassSpec) -> str:
        """What is to be said of an image that may not read the user data that Growth makes; of one that nobody can look at
        nothing: to look at images of one's own a token needs a right that nothing else here needs. While Linode does not
        answer it is what was said last.
        """
        if spec.user_data is None or spec.user_data.mode not in CLOUD_CONFIGS:
            return ""
        name = spec.image or classes.DEFAULT_IMAGE
        try:
            found = await self._cloud.image(name)
        except CallError as error:
            passing = not isinstance(error, Refused) or meaning(error) is Meaning.TRANSIENT
            return self._of_images.get(name, "") if passing else ""
        if found.capabilities is None or CLOUD_INIT in found.capabilities:
            self._of_images.pop(name, None)
            return ""
        self._of_images[name] = (
            f"spec.image: Linode does not say of {name} that it has {CLOUD_INIT}, without which machines do not read how they"
            f" join (spec.userData.mode {spec.user_data.mode}): use an image with it"
        )
        return self._of_images[name]

    async def _of_firewall(self, number: int) -> list[Problem]:
        """A token needs a right of its own to read firewalls: without it no other class is harmed."""
        try:
            await self._cloud.firewall(number)
        except Refused as error:
            match meaning(error):
                case Meaning.GONE:
                    said = f"spec.firewallID: the account has no firewall {number}: make it, or name another"
                    return [Problem(classes.NOT_FOUND, said)]
                case Meaning.FATAL:
                    return [Problem(classes.FIREWALL_UNREADABLE, FIREWALL_RIGHT)]
                case _:
                    raise
        return []
