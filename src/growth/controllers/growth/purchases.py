"""From a plan's machines of growth pools to NodeRequests: names, reservations, then the requests, several at a time."""

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final

from growth.api.growthpools import NODE_REQUEST, GrowthPool, NodeRequest
from growth.api.karpenter import Requirement
from growth.api.pools import PoolRef
from growth.cluster.node_requests import claim_name, claim_to_come, offering_name
from growth.controllers.environment import Environment
from growth.controllers.growth.booking import Wanted
from growth.controllers.growth.claims import needs_of, request_body, request_name
from growth.controllers.growth.reserving import GrowthReserving
from growth.controllers.provisioning.booking import UnknownUsage
from growth.controllers.provisioning.freshness import buys_the_same, vanished
from growth.controllers.provisioning.passes import Answer
from growth.controllers.provisioning.reserving import PlanAgain
from growth.controllers.vain import Vain
from growth.kube.errors import ApiError, ConfigError, GateClosed, KubeError, NotFound, ServerError, Unreachable
from growth.planning.plan import PlannedClaim
from growth.telemetry.logs import logger

_log = logger("provisioner")

# Requests that are created at the same time.
PARALLEL: Final = 32


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """A request to be made: `name` is its own, `pods` those that it is for; a `warm` one is for none.

    `annotations` are the request's.
    """

    name: str
    pool: GrowthPool
    type: str
    pods: tuple[str, ...] = ()
    requirements: tuple[Requirement, ...] = ()
    planned: PlannedClaim | None = None
    price: int = 0
    annotations: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def claim(self) -> str:
        return claim_name(self.name)

    @property
    def wanted(self) -> Wanted:
        return Wanted(name=self.claim, type=self.type.lower(), warm=self.planned is None, price=self.price)


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
    """What came of it: requests that are there, those that are not with the reason, and why to plan again."""

    created: tuple[Asking, ...] = ()
    refused: tuple[tuple[Asking, str], ...] = ()
    again: str = ""


class Requesting:
    """Asks for one process. What was asked for and not answered counts as asked until it is known."""

    def __init__(self, env: Environment, reserving: GrowthReserving) -> None:
        self._env = env
        self._reserving = reserving
        self._vain = Vain(env)

    def wanted(self, planned: Sequence[PlannedClaim], answer: Answer) -> list[Asking]:
        """What of a plan is still wanted, with names."""
        found: list[Asking] = []
        for each in planned:
            pods = tuple(pod for pod in each.pods if not vanished(pod, answer, self._env.state.pods.store))
            if pods:
                pool = answer.growth_pools[each.pool.name]
                found.append(
                    Asking(
                        name=request_name(pool.metadata.name, self._env.random),
                        pool=pool,
                        type=each.instance_type,
                        pods=pods,
                        requirements=needs_of(each, pool),
                        planned=each,
                        price=each.max_price,
                        annotations=self._vain.annotation(
                            answer.views[each.pool], (answer.shapes[pod] for pod in pods if pod in answer.shapes)
                        ),
                    )
                )
        return found

    async def ask(self, wanted: Sequence[Asking]) -> Asked:
        by_pool: dict[str, list[Asking]] = {}
        for each in wanted:
            by_pool.setdefault(each.pool.metadata.name, []).append(each)
        done = Asked()
        for name, some in by_pool.items():
            asked = await self._ask(name, some)
            done = Asked((*done.created, *asked.created), (*done.refused, *asked.refused), done.again or asked.again)
        return done

    async def _ask(self, name: str, wanted: Sequence[Asking]) -> Asked:
        pool = wanted[0].pool
        now = self._env.state.growth_pools.store.get(name)
        if now is None or not buys_the_same(pool, now):
            return Asked(again=f"growth NodePool {name} has changed")
        by_claim = {each.claim: each for each in wanted}
        try:
            granted = await self._reserving.reserve(pool, [each.wanted for each in wanted])
        except PlanAgain as error:
            return Asked(again=str(error))
        except UnknownUsage as error:
            return Asked(refused=tuple((each, str(error)) for each in wanted))
        created, failed = await self._create_all([by_claim[each.name] for each in granted.taken], until=granted.until)
        self._reserving.give_up(each.claim for each, _ in failed)
        refused = (*((by_claim[each.name], why) for each, why in granted.refused), *failed)
        return Asked(created, refused, "some machines could not be asked for" if created and refused else "")

    async def _create_all(
        self, wanted: Sequence[Asking], *, until: float
    ) -> tuple[tuple[Asking, ...], list[tuple[Asking, str]]]:
        left = iter(wanted)
        created: list[Asking] = []
        failed: list[tuple[Asking, str]] = []

        async def work() -> None:
            for each in left:
                why = await self._create(each, until=until)
                if why:
                    failed.append((each, why))
                else:
                    created.append(each)

        workers = (work() for _ in range(min(PARALLEL, len(wanted))))
        for result in await asyncio.gather(*workers, return_exceptions=True):
            if isinstance(result, BaseException):  # all of them have ended: nothing is created behind our back
                raise result
        return tuple(created), failed

    async def _create(self, each: Asking, *, until: float) -> str:
        """Creates the request; empty, or why not. One of which no answer came counts as created until it is known."""
        env = self._env
        if env.clock.boot_time() > until:
            return "its reservation was about to be released"
        assert env.state.catalogue is not None, "a plan is made of what is sold"
        body = request_body(
            each.name,
            offering=offering_name(env.state.catalogue.cloud, each.type),
            pool=each.pool,
            requirements=each.requirements,
            annotations=each.annotations,
        )
        try:
            stored: NodeRequest | None = await env.api.create(NODE_REQUEST, body)
        except (GateClosed, ConfigError):
            raise
        except Unreachable as error:
            return f"NodeRequest {each.name} was not created: {error}"
        except ServerError as error:
            stored = await self._looked_up(each.name, error)
        except ApiError as error:
            _log.warning("the server refuses a noderequest", NodeRequest=each.name, error=error.message)
            return f"NodeRequest {each.name} was refused: {error.message}"
        except KubeError as error:
            stored = await self._looked_up(each.name, error)
        if stored is not None:
            env.state.expect(claim_to_come(stored, each.pool))
        env.state.nominate(each.claim, seconds=env.settings.nomination)
        ref = PoolRef.growth(each.pool.metadata.name)
        _log.info(
            "created noderequest", NodePool=str(ref), NodeRequest=each.name, offering=body["spec"]["targetOffering"]
        )
        return ""

    async def _looked_up(self, name: str, error: KubeError) -> NodeRequest | None:
        """The request of which no usable answer came, as the server has it. None: it may yet come to be."""
        _log.warning("whether a noderequest was created is not known", NodeRequest=name, error=str(error))
        try:
            return await self._env.api.get(NODE_REQUEST, name)
        except (GateClosed, ConfigError):
            raise
        except (NotFound, KubeError):
            return None
