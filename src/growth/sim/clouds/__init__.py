"""Clouds that are functions: each speaks its vendor's REST API closely enough that the vendor's own client cannot tell.

Served over HTTP by `growth fake`, called in process by the simulated world. A fake knows nothing of Growth: no module of
it reads what Growth writes but through the API, so that a mistake of ours is not repeated here.
"""
