"""One module a controller: reads state, calls planning, performs the result.

May import planning, cluster, providers, kube, api. A controller decides nothing that planning could decide; it checks
that what it acts on is fresh, writes the intent before the effect, and reports what it did.
"""
