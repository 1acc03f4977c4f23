"""From a claim to a node that takes pods: launch, registration, initialisation, and the end of claims that never get there.

`decide` says what a claim needs next, `failures` what a launch that failed means, `edits` what is written; all three are
pure. `controller.Lifecycle` looks, asks them, and acts. `strangers` tells people of Nodes that say they are ours and are
not. Nobody here creates a Node: kubelets do.
"""

from growth.controllers.lifecycle.controller import METRICS, Lifecycle

__all__ = ["METRICS", "Lifecycle"]
