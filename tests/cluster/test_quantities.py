"""Quantities as the real API server reads, stores and prints them.

Two typed core objects carry thousands of quantities in one request: a Pod with the size limits of its volumes, printed as
they are, and a LimitRange, which takes any resource names and does not judge their values.
"""

import dataclasses
import json
import random
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from growth.units.errors import QuantityError
from growth.units.quantity import Quantity, Style
from tools.controlplane.plane import Plane

VALUES = 10_000
PER_OBJECT = 2_500
SEED = 20261115

SUFFIXES = ["n", "u", "m", "", "", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]


class Generator:
    """Quantities of every shape: all suffixes and exponents, signs, fractions, zeros at both ends, long and short."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def digits(self, longest: int) -> str:
        text = "".join(self.random.choices("0123456789", k=self.random.randint(1, longest)))
        shape = self.random.random()
        if shape < 0.3:
            return text[:-4] + "0" * min(4, len(text))
        if shape < 0.5:
            return str(1024 ** self.random.randint(0, 3) * self.random.randint(1, 9))
        return text

    def value(self) -> str:
        pick = self.random
        text = pick.choice(["", "", "", "+", "-"]) + self.digits(pick.choice([2, 4, 8, 20, 30]))
        if pick.random() < 0.4:
            text += "." + pick.choice(["", self.digits(pick.choice([1, 3, 4, 9, 12, 25]))])
        if pick.random() < 0.3:
            return text + pick.choice("eE") + pick.choice(["", "+", "-"]) + str(pick.randint(0, 40))
        return text + pick.choice(SUFFIXES)


def call(server: Plane, method: str, path: str, body: object = None) -> tuple[int, Any]:
    request = urllib.request.Request(
        server.url + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, context=ssl.create_default_context(cafile=str(server.ca))) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def limit_range(name: str, values: list[Any]) -> dict[str, Any]:
    most = {f"example.com/r{index}": value for index, value in enumerate(values)}
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": name},
        "spec": {"limits": [{"type": "Pod", "max": most}]},
    }


def printed(body: Any) -> list[str]:
    most = body["spec"]["limits"][0]["max"]
    return [most[f"example.com/r{index}"] for index in range(len(most))]


def pod(name: str, sizes: list[str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "automountServiceAccountToken": False,
            "containers": [{"name": "main", "image": "none"}],
            "volumes": [{"name": f"v{index}", "emptyDir": {"sizeLimit": size}} for index, size in enumerate(sizes)],
        },
    }


def sizes(body: Any) -> list[str]:
    return [volume["emptyDir"]["sizeLimit"] for volume in body["spec"]["volumes"]]


@dataclasses.dataclass(frozen=True)
class Shape:
    """How a kind of object prints its quantities, by us and by the server."""

    ours: Callable[[str], str]
    printed: Callable[[Any], list[str]]


PODS = "/api/v1/namespaces/default/pods"
LIMIT_RANGES = "/api/v1/namespaces/default/limitranges"


def kept_by_server(text: str) -> bool:
    """Decimal values above 999E lose their suffix in the server's print; that is tested on its own below."""
    quantity = Quantity.parse(text)
    return "e" not in quantity.text or quantity.style is Style.EXPONENT


def generated() -> list[str]:
    generator = Generator(SEED)
    values = (generator.value() for _ in range(2 * VALUES))
    different = list(dict.fromkeys(text for text in values if kept_by_server(text)))
    assert len(different) >= VALUES
    return different[:VALUES]


def differences(server: Plane, collection: str, batch: list[str], body: dict[str, Any], shape: Shape) -> list[Any]:
    """Creates the object, reads it back, and gives what is not printed the same by the two answers and by us."""
    status, created = call(server, "POST", collection, body)
    assert status == 201, created
    _, read = call(server, "GET", f"{collection}/{body['metadata']['name']}")
    rows = zip(batch, (shape.ours(text) for text in batch), shape.printed(created), shape.printed(read), strict=True)
    return [(text, mine, first, later) for text, mine, first, later in rows if not mine == first == later]


def test_ten_thousand_generated_values_are_printed_as_the_server_prints_them(apiserver: Plane) -> None:
    """What the server answers and what it later reads back from its store is what we print.

    Each value is the size limit of one of a Pod's volumes, which must not be negative.
    """
    values = [text.removeprefix("-") for text in generated()]
    shape = Shape(ours=lambda text: Quantity.parse(text).text, printed=sizes)
    found = []
    for start in range(0, VALUES, PER_OBJECT):
        batch = values[start : start + PER_OBJECT]
        found += differences(apiserver, PODS, batch, pod(f"quantities-{start}", batch), shape)
    assert found == []


def test_ten_thousand_resource_amounts_are_printed_as_the_server_prints_them(apiserver: Plane) -> None:
    """In a list of resources the server rounds up to a thousandth; negative values are among them."""
    values = generated()
    shape = Shape(ours=lambda text: Quantity.parse(text).rounded_up(-3).text, printed=printed)
    found = []
    for start in range(0, VALUES, PER_OBJECT):
        batch = values[start : start + PER_OBJECT]
        found += differences(apiserver, LIMIT_RANGES, batch, limit_range(f"amounts-{start}", batch), shape)
    assert found == []


def test_numbers_of_a_document_are_quantities_too(apiserver: Plane) -> None:
    """A JSON number is read as its digits are written."""
    numbers = [0, 1, 1000, 1024, -3, 0.5, 1.25, 1e21, 123456789]
    _, answer = call(apiserver, "POST", f"{LIMIT_RANGES}?dryRun=All", limit_range("numbers", numbers))
    assert printed(answer) == [Quantity.parse(number).text for number in numbers]


@pytest.mark.parametrize(("text", "server"), [("10000E", "10"), ("1.5e3E", None), ("123456000E", "123456")])
def test_the_one_difference_is_where_the_server_loses_a_value(apiserver: Plane, text: str, server: str | None) -> None:
    """Above 999E the server prints a decimal value without its suffix; we keep the value."""
    status, answer = call(apiserver, "POST", f"{LIMIT_RANGES}?dryRun=All", limit_range("lost", [text]))
    if server is None:
        assert status == 400
        return
    assert printed(answer) == [server]
    assert Quantity.parse(Quantity.parse(text).text) == Quantity.parse(text)


INVALID = [
    "",
    "-+1",
    "--1",
    "1.2.3",
    "1..2",
    "1 Gi",
    "1Gb",
    "1GB",
    "1gi",
    "1g",
    "1K",
    "1KI",
    "1ki",
    "1mi",
    "1t",
    "1i",
    "1iK",
    "1nn",
    "1mm",
    "1kM",
    "1e",
    "1e+",
    "1e-",
    "1e3e3",
    "1e3k",
    "1e1.5",
    "1E+",
    "1e99999999999999999999",
    "0x10",
    "1_000",
    "1,000",
    "1%",
    "inf",
    "NaN",
    "one",
    "Pi",
    "Ei",
    ".Pi",
    "e-10",
    "1+3",
    "1-3",
    "+-",
    "١",
    "1µ",
    "½",
    "1\u00a0Gi",
]
EMPTY_NUMBERS = ["k", "+", "-", ".", "+.", "Ki", "Ti", "e3", ".m", "-M"]


@pytest.mark.parametrize("text", INVALID)
def test_what_the_server_refuses_we_refuse(apiserver: Plane, text: str) -> None:
    """An invalid quantity is invalid on both sides."""
    status, answer = call(apiserver, "POST", f"{LIMIT_RANGES}?dryRun=All", limit_range("invalid", [text]))
    assert status == 400, answer
    with pytest.raises(QuantityError):
        Quantity.parse(text)


@pytest.mark.parametrize("text", EMPTY_NUMBERS)
def test_an_empty_number_is_zero_on_both_sides(apiserver: Plane, text: str) -> None:
    """The server reads a suffix or sign without digits as zero, and so do we."""
    status, answer = call(apiserver, "POST", f"{LIMIT_RANGES}?dryRun=All", limit_range("empty", [text]))
    assert status == 201, answer
    assert printed(answer) == ["0"] == [Quantity.parse(text).text]
