"""The decisions, pure: which machines for which pods, which nodes can go.

May import `growth.cluster.snapshot`, `growth.api` and `growth.units`; numpy and highspy. No I/O, no asyncio, no clock,
no randomness: equal input gives an equal plan on any machine, and budgets are counted in steps.
"""
