"""What keeps machines of a HetznerNodeClass from being made: the class by itself, the account, and user data."""

from collections.abc import Callable, Sequence

from growth.api.clouds import CreateError
from growth.api.nodeclasses import HETZNER_NODE_CLASS, HetznerNodeClass
from growth.kube.api import Api
from growth.ports import Clock
from growth.providers.hetzner import classes
from growth.providers.hetzner.account import Account
from growth.providers.hetzner.failures import Meaning, meaning, told
from growth.providers.http import Refused
from growth.providers.joining import Credentials
from growth.providers.nodeclasses import REFUSED, TOKEN_REFUSED, Problem
from growth.providers.readiness import Readiness


class HetznerReadiness(Readiness[HetznerNodeClass]):
    def __init__(
        self, api: Api, account: Account, credentials: Credentials, *, clock: Clock, exchanges: Callable[[], int]
    ) -> None:
        super().__init__(
            api, HETZNER_NODE_CLASS, vendor="Hetzner", credentials=credentials, clock=clock, exchanges=exchanges
        )
        self._account = account

    async def _checked(self, node_class: HetznerNodeClass) -> list[Problem]:
        spec = node_class.spec
        found = list(classes.problems(spec))
        if not found:
            found += await self._lacking(node_class)
        found += await self._of_user_data(spec.user_data, max_pods=spec.max_pods)
        return found

    def _ask_anew(self) -> None:
        self._account.forget()

    async def _lacking(self, node_class: HetznerNodeClass) -> Sequence[Problem]:
        """What the account lacks of what the class names. A refusal of the question itself is an answer too."""
        try:
            return await self._account.problems(node_class.spec, ())
        except Refused as error:
            said = told(error)
            match meaning(error.code, error.message):
                case Meaning.CONFIG:
                    return [Problem(REFUSED, f"Hetzner does not understand what the class names: {said}")]
                case Meaning.FATAL:
                    return [Problem(TOKEN_REFUSED, said)]
                case _:
                    raise

    def refused(self, node_class: HetznerNodeClass, said: str) -> CreateError:
        """A machine was refused for what its class asks for: told in the class, and as the error to be raised.

        What was read of the account is read anew: it may be no longer true.
        """
        self._account.forget()
        self.complain(node_class, f"Hetzner refused a machine of this class: {said}")
        return CreateError(
            f"Hetzner refuses a machine of {HETZNER_NODE_CLASS.kind} {node_class.metadata.name}: {said}",
            reason=REFUSED,
            retryable=False,
        )
