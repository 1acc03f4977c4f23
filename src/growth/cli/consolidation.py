"""`growth plan --consolidate`: what would go, what would come instead, and why the rest stays. Decided, not done."""

from growth.cli.manifests.collection import Collected
from growth.cluster.assemble import Picture
from growth.planning.disruption.decide import Options, decide
from growth.planning.disruption.model import Decided
from growth.planning.disruption.situating import situated
from growth.planning.explaining.facts import facts_of, pods_by_node
from growth.planning.plan import Plan


def consolidated(collected: Collected, picture: Picture, plan: Plan, options: Options) -> Decided:
    """What Growth would decide now. Nodes to which the plan sends pods stay, as they would be nominated."""
    objects = collected.objects
    pods = pods_by_node(objects.pods)
    situation = situated(
        picture,
        facts=facts_of(objects, picture, plan, buffered=collected.buffered, pods=pods),
        pods=pods,
        disruption_budgets=collected.disruption_budgets,
        buffered=collected.buffered,
    )
    return decide(situation, options)
