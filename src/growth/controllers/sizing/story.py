"""What is said of a pool that was brought to its number: the Decision of it. Pure, but for the clock and the price list."""

from collections.abc import Callable, Sequence
from typing import Final

from growth.api import names
from growth.api.decisions import DecisionAction, DecisionSpec
from growth.api.karpenter import NodeClaim, NodePool
from growth.cluster.pricing import PriceList
from growth.controllers.decisions import ACTED
from growth.controllers.environment import Environment
from growth.controllers.provisioning.claims import Order
from growth.units.money import NANO

CONTROLLER: Final = "sizing"

Tell = Callable[[DecisionSpec], object]


def bought(env: Environment, pool: NodePool, orders: Sequence[Order]) -> DecisionSpec:
    """Machines that a static pool lacked, or that replace its drifted ones."""
    name = pool.metadata.name
    anew = sum(not order.replaces for order in orders)
    parts = [f"it lacks {anew} of {pool.spec.replicas} replicas"] if anew else []
    if anew < len(orders):
        parts.append(f"to replace what drifted ({len(orders) - anew})")
    return DecisionSpec(
        at=env.clock.now(),
        controller=CONTROLLER,
        outcome=ACTED,
        summary=f"buys {_machines(len(orders))} for NodePool {name}: {', '.join(parts)}",
        actions=tuple(
            DecisionAction(
                verb="create",
                object=f"NodeClaim/{order.name}",
                node_pool=name,
                instance_type=order.planned.instance_type,
                price=order.planned.price / NANO,
                why=f"in the place of {', '.join(order.replaces)}" if order.replaces else "a replica is missing",
            )
            for order in orders
        ),
    )


def ended(env: Environment, pool: NodePool, claims: Sequence[NodeClaim], *, why: str) -> DecisionSpec:
    """Machines that were too many, or that drifted."""
    name = pool.metadata.name
    return DecisionSpec(
        at=env.clock.now(),
        controller=CONTROLLER,
        outcome=ACTED,
        summary=f"takes down {_machines(len(claims))} of NodePool {name}: {why}",
        actions=tuple(
            DecisionAction(
                verb="delete",
                object=f"NodeClaim/{claim.metadata.name}",
                node_pool=name,
                instance_type=claim.metadata.labels.get(names.INSTANCE_TYPE_LABEL, ""),
                price=_price(env, claim),
                why=why,
            )
            for claim in claims
        ),
    )


def _price(env: Environment, claim: NodeClaim) -> float | None:
    found = PriceList(env.state.catalogue).of(claim)
    return None if found is None else found / NANO


def _machines(number: int) -> str:
    return "a machine" if number == 1 else f"{number} machines"
