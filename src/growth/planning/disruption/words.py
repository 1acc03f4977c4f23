"""Why nodes stay, in one word for machines: the `reason` of everything that is `Kept`. A contract with whoever reads it."""

from typing import Final

# Not ours to move.
UNMANAGED: Final = "Unmanaged"  # no claim says that the machine is ours
NOT_INITIALIZED: Final = "NotInitialized"
LEAVING: Final = "Leaving"  # it goes already, or somebody is disrupting it
DOUBTFUL: Final = "Doubtful"  # what is known of it contradicts itself
GROWTH_POOL: Final = "GrowthPool"  # its pool has rules of its own
POOL_NOT_FOUND: Final = "NodePoolNotFound"

# Somebody does not want it moved.
PAUSED: Final = "Paused"
DO_NOT_DISRUPT: Final = "DoNotDisrupt"
POD_BUDGET: Final = "PodDisruptionBudget"
STATIC: Final = "StaticNodePool"
MINIMUM: Final = "Minimum"  # its growth pool keeps so many of its type
BUFFER: Final = "CapacityBuffer"
DISABLED: Final = "ConsolidationDisabled"
MALFORMED: Final = "Malformed"  # a rule of its pool that cannot be read

# A matter of time.
NOMINATED: Final = "Nominated"
CONSOLIDATE_AFTER: Final = "ConsolidateAfter"
BACK_OFF: Final = "BackOff"
DRIFTED_WAITS: Final = "DriftedWaits"  # another drifted node of its pool goes first, or is tried first
DESTINATION: Final = "Destination"  # pods of a node that goes come here
RECENTLY_MOVED: Final = "RecentlyMoved"  # its pods were moved a moment ago
PAID: Final = "PaidFor"  # it is empty, and ending it now would save nothing
PODS_ENDING: Final = "PodsEnding"  # pods are on their way out whose room decides what is bought for its own
PASSING: Final = frozenset(
    {NOMINATED, CONSOLIDATE_AFTER, BACK_OFF, DRIFTED_WAITS, DESTINATION, RECENTLY_MOVED, PAID, PODS_ENDING}
)

# No room for more at the same time.
BUDGET: Final = "Budget"
NODE_LIMIT: Final = "NodeLimit"

# There is nothing to gain, or it is not known.
UP_TO_DATE: Final = "UpToDate"  # asked about drift: there is none
IN_USE: Final = "InUse"  # it has pods, and none of them could go anywhere cheaper
PRICE_UNKNOWN: Final = "PriceUnknown"
NO_PLACE: Final = "NoPlace"  # its pods would have no place
BALANCED: Final = "Balanced"  # what it saves is not worth the pods that it moves
TOO_LITTLE: Final = "TooLittle"  # what it saves does not pay for the pods that it moves
