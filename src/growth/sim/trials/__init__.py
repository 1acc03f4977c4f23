"""Small worlds that put one part under stress and check its promises: run by tests for a few seeds, by `bench` for many.

May import what `growth.sim` may import. Each trial is a function of a seed; a broken promise is an AssertionError, and
what happened is returned as a frozen value.
"""
