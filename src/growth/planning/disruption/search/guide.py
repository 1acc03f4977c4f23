"""Which nodes are worth their price: a small linear program over fractions of machines.

Nodes that are there may stay in part, types may be bought in part; together they must have room for everything that runs.
What a unit of each resource is worth then says which nodes are dear for the room that they give, and which are dear for
what they hold. The program is a guide for the order of the search and proves nothing.
"""

import dataclasses
from typing import Final

import highspy
import numpy as np

from growth.planning.bound import solver
from growth.planning.market import Floats

# HiGHS refuses a row with a coefficient of 10¹⁵. Nodes may say that they have any amount of anything.
MOST_PARTS: Final = 1e15 - 1


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Guide:
    """`worth` is of one unit of each resource."""

    worth: Floats

    def of(self, amounts: Floats) -> Floats:
        """What each row of amounts is worth."""
        found: Floats = np.maximum(amounts, 0) @ self.worth
        return found


def guide(rooms: Floats, prices: Floats, load: Floats, *, sold_rooms: Floats, sold_prices: Floats) -> Guide:
    """The guide for nodes with such rooms and prices that hold the load, where types of such rooms and prices are sold."""
    asked = np.flatnonzero(load > 0)
    worth = np.zeros(len(load))
    if not len(asked):
        return Guide(worth)
    every, costs = np.concatenate([rooms, sold_rooms])[:, asked], np.concatenate([prices, sold_prices])
    # In parts of the whole load and of the dearest machine, so that bytes, millicores and money are of a size.
    parts = np.clip(every / load[asked], 0.0, MOST_PARTS)
    money = max(1.0, float(costs.max(initial=1.0)))
    upper = np.concatenate([np.ones(len(rooms)), np.full(len(sold_rooms), highspy.kHighsInf)])
    program = solver()
    number = len(costs)
    columns = np.arange(number, dtype=np.int32)
    program.addVars(number, np.zeros(number), upper)
    program.changeColsCost(number, columns, costs / money)
    for resource in range(len(asked)):
        program.addRow(1.0, highspy.kHighsInf, number, columns, np.ascontiguousarray(parts[:, resource]))
    program.run()
    duals = np.maximum(np.array(program.getSolution().row_dual, dtype=np.float64), 0.0)
    # A row that the solver did not take leaves it with the answer to another question.
    if program.getModelStatus() == highspy.HighsModelStatus.kOptimal and len(duals) == len(asked):
        worth[asked] = duals * money / load[asked]
    if not worth.any():
        # Nothing is for sale that holds everything: each resource is worth the same share of what machines cost.
        worth[asked] = costs.sum() / len(asked) / np.maximum(every.sum(axis=0), 1.0)
    return Guide(worth)
