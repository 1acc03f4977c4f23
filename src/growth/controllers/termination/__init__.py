"""The end of machines: whoever deletes a claim, a Node or a pool, the pods leave in order and the machine goes.

    claim deleted ──► Node deletion requested, taint ──► pods drained, volumes detached ──► machine deleted until gone
    Node deleted ──► its claim deleted, as above          └─► Node's finalizer removed ──► claim's finalizer removed

`Termination` is the controller; a deletion cannot be taken back, so each step may be repeated after a crash, and is.
"""

from growth.controllers.termination.controller import Termination

__all__ = ["Termination"]
