"""Whole autoscalers on a whole control plane: what benchmarks and campaigns of ownership stand on.

`desk` talks to the server as its administrator, `autoscaler` starts Growth or Karpenter as a process and reads what it
used, `audit` reads who wrote what and when from the server's own log, `machines` counts what there is.
"""
