"""Pools of `growth.dev`: from demand to NodeRequests, from requests to claims, and back by NodeRemovalRequests.

    plan ─► purchases ─► NodeRequest ─► requests ─► NodeClaim ─► lifecycle …
    pools ─► (min) ──────────┘
    scaling ─► NodeRemovalRequest ─► removals ─► cloud: delete until gone ─► claim deleted

What is to be done next is pure (`progress`, `removing`, `emptying`, `booking`, `resting`, `status`); the modules beside them
look, ask and act. Whoever creates a claim or a request has reserved its name first (`reserving`).
"""
