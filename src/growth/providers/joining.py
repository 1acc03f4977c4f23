"""What a machine needs to join, fetched and made: the class' Secret, and a bootstrap token of the machine's own.

Secrets are read by name from Growth's own namespace and from nowhere else. A token is a Secret in kube-system, as kubeadm
and k3s know it; it ends by itself after half an hour, and clusters that clean up ended tokens remove it.
"""

import base64
import dataclasses
import datetime as dt
import string
from collections.abc import Mapping, Sequence
from typing import Final

from growth.api import names
from growth.api.core import SECRET
from growth.api.karpenter import NodeClaim
from growth.api.nodeclasses import HetznerUserData as UserData
from growth.api.placement import NO_EXECUTE, Taint
from growth.kube.api import Api
from growth.kube.errors import AlreadyExists, Forbidden, NotFound
from growth.ports import Clock, Random
from growth.providers.catalogues.hetzner import PODS
from growth.providers.userdata import HETZNER, Joining, UserDataError, Vendor, kubelets_labels, own_credential, render
from growth.units import print_time

TOKEN_NAMESPACE: Final = "kube-system"  # noqa: S105 - a namespace
TOKEN_TYPE: Final = "bootstrap.kubernetes.io/token"  # noqa: S105 - a type
TOKEN_PREFIX: Final = "bootstrap-token-"  # noqa: S105 - of a name
CLAIM_LABEL: Final = "growth.dev/claim"
TOKEN_SECONDS: Final = 1800.0
# One that a repeated purchase may use again: it must last as long as a machine takes to boot.
REUSED_SECONDS: Final = 1200.0
SECRET_SECONDS: Final = 10.0
_ALPHABET: Final = string.ascii_lowercase + string.digits
_ATTEMPTS: Final = 3
# A text of the length of a token, to see whether user data can be made of a class.
_SAMPLE: Final = "aaaaaa.aaaaaaaaaaaaaaaa"


@dataclasses.dataclass(frozen=True, slots=True)
class _Token:
    text: str = dataclasses.field(repr=False)
    until: float


class Credentials:
    """One per process. `api` reads Secrets of `namespace` and makes them in kube-system."""

    def __init__(self, api: Api, *, namespace: str, clock: Clock, random: Random, vendor: Vendor = HETZNER) -> None:
        self._api = api
        self._vendor = vendor
        self._namespace = namespace
        self._clock = clock
        self._random = random
        self._values: dict[str, tuple[float, Mapping[str, str]]] = {}
        self._tokens: dict[str, _Token] = {}

    async def user_data(
        self, claim: NodeClaim, asked: UserData | None, *, max_pods: int | None, more: Mapping[str, str]
    ) -> str:
        """The machine's user data; empty where its class has none. `UserDataError` where it cannot be made."""
        if asked is None:
            return ""
        values = await self._secret(asked.secret_ref.name)
        group = own_credential(asked, values)
        joining = Joining(
            name=claim.metadata.name,
            labels=kubelets_labels({**more, **claim.metadata.labels}),
            taints=taints_of(claim),
            max_pods=max_pods or PODS,
            values=values,
            vendor=self._vendor,
            credential=await self._token(claim, group) if group else "",
        )
        return render(asked, joining)

    async def check(self, asked: UserData | None, *, max_pods: int | None) -> None:
        """`UserDataError` where no machine of the class could get its user data."""
        if asked is None:
            return
        values = await self._secret(asked.secret_ref.name)
        joining = Joining(
            name="example",
            labels={},
            taints=(),
            max_pods=max_pods or PODS,
            values=values,
            vendor=self._vendor,
            credential=_SAMPLE if own_credential(asked, values) else "",
        )
        render(asked, joining)

    async def _secret(self, name: str) -> Mapping[str, str]:
        now = self._clock.monotonic()
        known = self._values.get(name)
        if known is not None and now - known[0] < SECRET_SECONDS:
            return known[1]
        try:
            found = await self._api.get(SECRET, name, namespace=self._namespace)
        except NotFound:
            raise UserDataError(
                f"spec.userData.secretRef: there is no Secret {name} in namespace {self._namespace}: make it there"
            ) from None
        except Forbidden:
            raise UserDataError(
                f"spec.userData.secretRef: Growth may not read Secret {name} in namespace {self._namespace}: give it the"
                " rights that `growth rbac` prints"
            ) from None
        try:
            values = {key: value.decode() for key, value in found.data.items()}
        except UnicodeDecodeError:
            raise UserDataError(f"Secret {name} holds what is no text: its values must be text in UTF-8") from None
        self._values[name] = (now, values)
        return values

    async def _token(self, claim: NodeClaim, group: str) -> str:
        now = self._clock.monotonic()
        self._tokens = {uid: token for uid, token in self._tokens.items() if token.until > now}
        known = self._tokens.get(claim.metadata.uid)
        if known is not None and known.until - now >= REUSED_SECONDS:
            return known.text
        for _ in range(_ATTEMPTS):
            identity, secret = self._word(6), self._word(16)
            body = self._token_body(claim, group, identity, secret)
            try:
                await self._api.create(SECRET, body, namespace=TOKEN_NAMESPACE)
            except AlreadyExists:
                continue
            except Forbidden:
                raise UserDataError(
                    f"Growth may not make Secrets in {TOKEN_NAMESPACE}, as each machine's own token needs: give it the rights"
                    " that `growth rbac` prints, or put a shared token into the class' Secret"
                ) from None
            text = f"{identity}.{secret}"
            self._tokens[claim.metadata.uid] = _Token(text, now + TOKEN_SECONDS)
            return text
        raise UserDataError("no name for a bootstrap token was free: try again")

    def _token_body(self, claim: NodeClaim, group: str, identity: str, secret: str) -> dict[str, object]:
        ends = self._clock.now() + dt.timedelta(seconds=TOKEN_SECONDS)
        data = {
            "token-id": identity,
            "token-secret": secret,
            "expiration": print_time(ends),
            "usage-bootstrap-authentication": "true",
            "usage-bootstrap-signing": "true",
            "auth-extra-groups": group,
            "description": f"made by Growth for NodeClaim {claim.metadata.name}",
        }
        return {
            "apiVersion": SECRET.api_version,
            "kind": SECRET.kind,
            "metadata": {"name": f"{TOKEN_PREFIX}{identity}", "labels": {CLAIM_LABEL: claim.metadata.name}},
            "type": TOKEN_TYPE,
            "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()},
        }

    def _word(self, length: int) -> str:
        return "".join(self._random.choice(_ALPHABET) for _ in range(length))


def taints_of(claim: NodeClaim) -> Sequence[Taint]:
    """What the Node registers with: pods stay away until its labels and taints are right."""
    unregistered = Taint(key=names.UNREGISTERED_TAINT, effect=NO_EXECUTE)
    found = (unregistered, *claim.spec.taints, *claim.spec.startup_taints)
    return tuple({(taint.key, taint.effect): taint for taint in found}.values())
