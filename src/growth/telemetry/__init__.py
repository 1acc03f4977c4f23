"""What every layer says about itself: log lines with their context, and metrics.

Beside `growth.units` at the bottom: may import nothing of Growth, so that providers and controllers alike can use it.
`logs` gives out loggers and binds what a line is about, `metrics` declares and counts, `redaction` keeps secrets out of
both. Where lines go and who may scrape is decided in `growth.operator`. Promises: no secret passes `redaction`, and no
metric lives in a global registry.
"""
