"""Moves: nodes that go before their time, what is bought in their place first, and everything that makes it safe.

controller   the loop: mend what was left behind, look, have it decided, hand the moves over, tell
question     what a decision is asked, and the checks of a move before it acts; pure
executing    one move: wait, check again, taint, buy, wait until initialised, look afresh, delete; or take it all back
confirming   the last look of a move, at the server and not the cache
moving       the moves that wait or run, and what is remembered of those that ended
discouraging the mark on nodes that are the next to go, which kube-scheduler avoids
mending      what a dead process left behind: moves to go on with, taints and machines that nobody stands for
"""

from growth.controllers.disruption.controller import Disruption
from growth.controllers.disruption.metrics import METRICS

__all__ = ["METRICS", "Disruption"]
