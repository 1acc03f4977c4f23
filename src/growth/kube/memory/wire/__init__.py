"""The server as its clients see it over HTTP: paths, tables, discovery.

`routing` turns one request into one answer without any I/O; `serve` puts aiohttp around it.
"""
