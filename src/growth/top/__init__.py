"""`growth top`: any cluster as one screen. What is shown is worked out apart from how it is shown.

    Api ─► `following` (informers) ─► `model` (rows, pure) ─► `view` (textual)
                     └─► `thinking` (plans afresh, on another thread: why nodes stay, why pods wait, the bound)

May import everything but `cli` and `demo`; the operator never imports it, and so never imports textual.
"""
