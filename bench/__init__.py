"""Benchmarks: `python -m bench NAME [-o json]`. Both sides of a comparison run in one process tree, and ratios are printed."""
