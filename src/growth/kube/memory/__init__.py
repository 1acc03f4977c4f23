"""The API server in process: the real server's semantics on plain dicts, without threads, sockets or waiting.

`server.MemoryServer` holds the objects and has every verb; `api.MemoryApi` is `growth.kube.api.Api` on it; `serve`
offers it over HTTP, so that `kubectl` works. It may import what `growth.kube` may import. It promises what
`tests/conformance` says of all three backends; a difference from the real server is a bug here.
"""

from growth.kube.memory.api import MemoryApi
from growth.kube.memory.server import MemoryServer

__all__ = ["MemoryApi", "MemoryServer"]
