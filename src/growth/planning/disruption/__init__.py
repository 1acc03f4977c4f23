"""Which machines go before their time, why the others stay, and what comes instead. Pure, as all of planning.

situating     from a picture of the cluster to a `Situation`
candidates    who may be disturbed at all, and what protects the others; words: their names
room          how many of a pool may go now: budgets and node limits
drift         which machines are no longer what their pool asks for
search        consolidation: fewer or cheaper machines for the same pods
balanced      whether a move is worth it to pools of that policy
surplus       which machines go first where a pool has too many
static        which drifted machines a static pool replaces now, and by what
turns         which drifted nodes of a pool are tried, where there are too many for one decision
decide        all of it in Karpenter's order: one `Decided`
consequences  the situation as moves leave it to those who decide next
reusing       an empty node instead of a purchase
"""
