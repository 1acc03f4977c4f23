"""`growth.dev/v1alpha1` Decision: what one pass decided and why, kept as history."""

import datetime as dt
from typing import Annotated, ClassVar, Final

from growth.api import names
from growth.api.kinds import Kind
from growth.api.meta import ObjectMeta, Struct
from growth.api.schema import Rule, Schema

# A Decision is kept below this size, in bytes of JSON; what does not fit is counted in `omitted`.
MAX_BYTES: Final = 32 * 1024


class DecisionAction(Struct, frozen=True):
    verb: Annotated[str, Schema("What is done: create, delete, replace.", min_length=1)]
    object: Annotated[str, Schema("To what, as kind/name.")] = ""
    node_pool: Annotated[str, Schema("The pool: NAME of Karpenter's, growth.dev/NAME of ours.")] = ""
    instance_type: Annotated[str, Schema("The type of the machine.")] = ""
    price: Annotated[float | None, Schema("Its price an hour, in the currency of `cost`.")] = None
    pods: Annotated[int, Schema("For how many pods.", format="int32", minimum=0)] = 0
    why: Annotated[str, Schema("Why this, and not the next best.")] = ""


class DecisionReason(Struct, frozen=True):
    """Why a pool could not hold a pod."""

    node_pool: Annotated[str, Schema("The pool that was tried.")] = ""
    filter: Annotated[str, Schema("The rule that refused: taints, requirements, resources, topology and so on.")] = ""
    message: Annotated[str, Schema("What was missing, and the nearest miss.")] = ""


class UnschedulablePods(Struct, frozen=True):
    """Pods with equal reasons stand in one entry."""

    pods: Annotated[int, Schema("How many pods.", format="int32", minimum=1)]
    example: Annotated[str, Schema("One of them, as namespace/name.")] = ""
    reasons: Annotated[tuple[DecisionReason, ...], Schema("Pool by pool.", list_type="atomic")] = ()


class KeptNodes(Struct, frozen=True):
    """Nodes with an equal reason stand in one entry."""

    nodes: Annotated[int, Schema("How many nodes.", format="int32", minimum=1)]
    example: Annotated[str, Schema("One of them.")] = ""
    reason: Annotated[str, Schema("Why they stay.")] = ""


class DecisionCost(Struct, frozen=True):
    currency: Annotated[str, Schema("As in the price list: EUR, USD.")] = ""
    before: Annotated[float | None, Schema("Price an hour before.")] = None
    after: Annotated[float | None, Schema("Price an hour after.")] = None
    lower_bound: Annotated[float | None, Schema("No plan for the same pods can cost less; missing: not known.")] = None


class DecisionSpec(Struct, frozen=True):
    schema: ClassVar = Schema(
        rules=(Rule("self == oldSelf", "spec is immutable: a Decision is history and never changed"),),
    )

    at: Annotated[dt.datetime, Schema("When it was decided.")]
    controller: Annotated[str, Schema("Who decided.", min_length=1)]
    outcome: Annotated[str, Schema("What came of it.", enum=("Acted", "WouldAct", "Nothing", "Blocked"))]
    revision: Annotated[str, Schema("The state of the cluster that was looked at.")] = ""
    summary: Annotated[str, Schema("The decision in a sentence.", max_length=1024)] = ""
    actions: Annotated[tuple[DecisionAction, ...], Schema("What is done.", list_type="atomic")] = ()
    unschedulable: Annotated[
        tuple[UnschedulablePods, ...], Schema("The pods that stay without a node.", list_type="atomic")
    ] = ()
    kept: Annotated[tuple[KeptNodes, ...], Schema("The nodes that were looked at and stay.", list_type="atomic")] = ()
    cost: Annotated[DecisionCost | None, Schema("Prices an hour.")] = None
    omitted: Annotated[int, Schema("How many entries were left out for size.", format="int32", minimum=0)] = 0


class Decision(Struct, frozen=True):
    """What one pass decided and why. Never changed; the newest 200 are kept."""

    spec: DecisionSpec
    metadata: ObjectMeta = ObjectMeta()


DECISION: Final = Kind(names.GROWTH, "v1alpha1", "Decision", "decisions", namespaced=False, type=Decision)
