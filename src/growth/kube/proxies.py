"""The proxy that the environment names for a server, by the rules that kubectl follows.

`HTTPS_PROXY` or `HTTP_PROXY` by the server's scheme, in capitals or small letters, unless `NO_PROXY` names the host: as
itself, as a domain (`example.com` and `.example.com` cover what is below them), as an address, as a network (10.0.0.0/8),
each with a port or without, or as `*`. This machine itself is never reached through a proxy.
"""

import contextlib
import ipaddress
import urllib.parse
from collections.abc import Mapping


def proxy_of(server: str, environ: Mapping[str, str]) -> str:
    """The proxy's URL, or nothing."""
    parts = urllib.parse.urlsplit(server)
    host = (parts.hostname or "").lower()
    name = f"{parts.scheme}_proxy"
    proxy = environ.get(name) or environ.get(name.upper()) or ""
    if not proxy or is_this_machine(host):
        return ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    excepted = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    if any(_covers(entry.strip().lower(), host, port) for entry in excepted.split(",")):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def is_this_machine(host: str) -> bool:
    """By its name or as an address; no name is looked up."""
    if host == "localhost":
        return True
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False


def _covers(entry: str, host: str, port: int) -> bool:
    if entry == "*":
        return True
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False)
    name, colon, number = entry.rpartition(":")
    if colon and number.isdigit():
        if int(number) != port:
            return False
        entry = name.strip("[]")
    if not entry:
        return False
    return host == entry.lstrip(".") or host.endswith("." + entry.lstrip("."))
