"""What pods are worth when machines are whole: a linear program over whole fillings, grown by the ones that would pay.

The assignment of fractions (`bound`) does not see that what is left over on a machine is lost. Here every column of the
program is one filling of one machine; its duals price pods as machines really hold them, new fillings are made by those
prices, and those that are worth more than they cost join, a fixed number of times. It is no bound, because fillings are
found by a rule of thumb; it is what good plans are drawn from.
"""

from typing import Any

import highspy
import numpy as np

from growth.planning.bound import solver
from growth.planning.drawing import Drawing, Filler, draw
from growth.planning.market import Bools, Floats, Ints, Market

# How often fillings are made by new prices, as long as there were no more steps than so many a pod: where pods are few,
# most steps place only one.
ROUNDS = 10
STEPS = 1
# A filling pays if it is worth so much more than it costs.
PAYS = 1.0005
# What it costs not to place a pod, as a multiple of what it is worth: more than any filling.
DEAR = 100.0


class Patterns:
    """The program for these pods and columns, grown when it is made. `worth` is by class."""

    def __init__(self, goods: Market, counts: Ints, worth: Floats, *, columns: Bools) -> None:
        self._goods = goods
        self._counts = counts
        self._columns = columns
        self._held: list[tuple[int, Ints]] = []
        self._seen: set[tuple[int, bytes]] = set()
        self._shares: Floats = np.zeros(0)
        self.worth = worth
        self._grow()

    def _grow(self) -> None:
        usable = np.flatnonzero(self._columns)
        wanted = np.flatnonzero((self._counts > 0) & self._goods.allowed[:, usable].any(axis=1))
        if not len(usable) or not len(wanted):
            return
        row_of = np.full(len(self._counts), -1, dtype=np.int32)
        row_of[wanted] = np.arange(len(wanted))
        program = solver()
        for at in wanted.tolist():
            program.addRow(float(self._counts[at]), highspy.kHighsInf, 0, np.zeros(0, np.int32), np.zeros(0))
        money = max(1.0, float(self._goods.prices[usable].max()))
        dear = DEAR * max(1.0, float(self.worth.max(initial=1.0)))
        for row in range(len(wanted)):
            program.addCol(dear / money, 0.0, highspy.kHighsInf, 1, np.array([row], np.int32), np.ones(1))
        filler = Filler(self._goods, usable, self.worth)
        for turn in range(ROUNDS):
            if filler.steps > STEPS * int(self._counts.sum()):
                break
            columns, fillings = filler.fillings(self._counts)
            values = fillings @ self.worth
            added = False
            for at in range(len(columns)):
                price = int(self._goods.prices[columns[at]])
                if fillings[at].any() and (turn == 0 or values[at] > price * PAYS):
                    added |= self._add(program, int(columns[at]), fillings[at], row_of, price / money)
            if not added:
                break
            program.run()
            solution = program.getSolution()
            self.worth = np.zeros(len(self._counts))
            self.worth[wanted] = np.maximum(np.array(solution.row_dual), 0) * money
            self._shares = np.array(solution.col_value)[len(wanted) :]
            filler.value(self.worth)

    def _add(
        self,
        program: highspy.Highs,
        column: int,
        pods: Ints,
        row_of: "np.ndarray[Any, np.dtype[np.int32]]",
        price: float,
    ) -> bool:
        key = (column, pods.tobytes())
        if key in self._seen:
            return False
        self._seen.add(key)
        self._held.append((column, pods.copy()))
        some = np.flatnonzero(pods)
        program.addCol(price, 0.0, highspy.kHighsInf, len(some), row_of[some], pods[some].astype(np.float64))
        return True

    def rounded(self) -> list[Drawing]:
        """The machines of the program, as many whole ones of each filling as it says; the rest is drawn."""
        left = self._counts.copy()
        drawings: list[Drawing] = []
        order = np.lexsort((np.arange(len(self._shares)), -np.round(self._shares, 6)))
        for at in order.tolist():
            column, pods = self._held[at]
            some = pods > 0
            copies = min(int(self._shares[at] + 1e-6), int((left[some] // pods[some]).min()))
            if copies > 0:
                left = left - copies * pods
                drawings.extend([Drawing(column, pods)] * copies)
        return drawings + draw(self._goods, left, self.worth, columns=self._columns)
