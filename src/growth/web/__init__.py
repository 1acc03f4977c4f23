"""The dashboard's API (server-sent events), /metrics, /healthz and /readyz.

May import controllers and everything below them. Reads only; serves views of plans and state that others made.
"""
