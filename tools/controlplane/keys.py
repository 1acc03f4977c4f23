"""A fresh key for service account tokens, made without a crypto library.

Any number below the order of the curve P-256 is a private key; readers compute the public half from it. This key signs
tokens of a throw-away server on loopback and lives as long as that server.
"""

import base64
import secrets
from typing import Final

P256_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
P256_OID: Final = bytes.fromhex("06082a8648ce3d030107")


def service_account_key() -> str:
    """An EC private key in PEM (SEC 1, without the optional public half)."""
    number = 1 + secrets.randbelow(P256_ORDER - 1)
    body = b"\x02\x01\x01" + b"\x04\x20" + number.to_bytes(32, "big") + b"\xa0\x0a" + P256_OID
    encoded = base64.b64encode(b"\x30" + bytes([len(body)]) + body).decode()
    lines = [encoded[at : at + 64] for at in range(0, len(encoded), 64)]
    return "\n".join(["-----BEGIN EC PRIVATE KEY-----", *lines, "-----END EC PRIVATE KEY-----", ""])
