"""Settings, leader election, wiring, start and stop of the running autoscaler.

May import everything below it. Holds no decision: it builds the ports, the caches and the controllers and connects them.
"""
