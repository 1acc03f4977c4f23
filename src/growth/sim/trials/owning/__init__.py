"""The whole autoscaler in a simulated cluster: it buys, loses processes and networks, and gives back; others count.

`stage` is the cluster with the ledger and the replicas of the autoscaler as processes that come back when they die,
`crashes` ends the process after every write in turn, `limits` bursts against limits and caps with two leaders at once.
"""
