"""Which proxy the environment means."""

import pytest

from growth.kube.proxies import proxy_of

PROXY = "http://proxy.invalid:3128"


@pytest.mark.parametrize(
    ("server", "environ", "expected"),
    [
        ("https://dev.invalid:6443", {}, ""),
        ("https://dev.invalid:6443", {"HTTPS_PROXY": PROXY}, PROXY),
        ("https://dev.invalid:6443", {"https_proxy": PROXY, "HTTPS_PROXY": "http://other.invalid"}, PROXY),
        ("https://dev.invalid:6443", {"HTTP_PROXY": PROXY}, ""),
        ("http://dev.invalid:8080", {"HTTP_PROXY": PROXY}, PROXY),
        ("https://dev.invalid:6443", {"HTTPS_PROXY": "proxy.invalid:3128"}, PROXY),
        ("https://localhost:6443", {"HTTPS_PROXY": PROXY}, ""),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": PROXY}, ""),
        ("https://[::1]:6443", {"HTTPS_PROXY": PROXY}, ""),
        ("https://dev.invalid", {"HTTPS_PROXY": PROXY, "NO_PROXY": "*"}, ""),
        ("https://dev.invalid", {"HTTPS_PROXY": PROXY, "NO_PROXY": "a.invalid, dev.invalid"}, ""),
        ("https://api.dev.invalid", {"HTTPS_PROXY": PROXY, "NO_PROXY": "dev.invalid"}, ""),
        ("https://api.dev.invalid", {"HTTPS_PROXY": PROXY, "NO_PROXY": ".dev.invalid"}, ""),
        ("https://mydev.invalid", {"HTTPS_PROXY": PROXY, "NO_PROXY": "dev.invalid"}, PROXY),
        ("https://dev.invalid:6443", {"HTTPS_PROXY": PROXY, "NO_PROXY": "dev.invalid:6443"}, ""),
        ("https://dev.invalid:6443", {"HTTPS_PROXY": PROXY, "NO_PROXY": "dev.invalid:443"}, PROXY),
        ("https://10.96.0.1:443", {"HTTPS_PROXY": PROXY, "NO_PROXY": "10.0.0.0/8,.svc"}, ""),
        ("https://11.96.0.1:443", {"HTTPS_PROXY": PROXY, "NO_PROXY": "10.0.0.0/8,.svc"}, PROXY),
        ("https://10.96.0.1:443", {"HTTPS_PROXY": PROXY, "NO_PROXY": "10.96.0.1"}, ""),
        ("https://[fd00::1]:443", {"HTTPS_PROXY": PROXY, "NO_PROXY": "fd00::/8"}, ""),
        ("https://dev.invalid", {"HTTPS_PROXY": PROXY, "NO_PROXY": ""}, PROXY),
    ],
)
def test_the_environment_names_the_proxy(server: str, environ: dict[str, str], expected: str) -> None:
    """Scheme, spelling, exceptions by name, port, address and network, and never for this machine."""
    assert proxy_of(server, environ) == expected
