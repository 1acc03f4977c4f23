"""Keeps pools at their numbers: `spec.replicas` of static pools, and `limits.nodes` of every pool that has more.

decide       what a pool lacks, and how what it buys is called; pure
offer        the machine that a static pool buys, as an order; pure
filling      buys what a static pool lacks: reserve, then buy
lowering     takes down what is too many: a fresh look, then delete
renewing     replaces drifted machines of static pools
rests        what came to nothing is tried later and later
story        what is said of it: Decisions
controller   looks at pool after pool, and has the others do what is due
"""

from growth.controllers.sizing.controller import Sizing

__all__ = ["Sizing"]
