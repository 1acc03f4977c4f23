"""Instance types from a file in the format of Karpenter's KWOK provider, JSON or YAML.

A list of types; each has `name`, `architecture`, `operatingSystems`, `resources` and `offerings`. An offering has
`Price`, `Available` (true unless it says false) and `Requirements` on zone and capacity type, or shorter `price`, `zone`
and `capacityType`. As in Go, the case of field names does not count. Fields that Growth does not know are ignored.
Every error names the file, the entry and the field.
"""

import json
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from growth.api import names
from growth.api.instance_types import Catalogue, InstanceType, Offering
from growth.providers.catalogues.kwok import DEFAULT_PODS, OVERHEAD, labels_of
from growth.units.errors import MoneyError, QuantityError
from growth.units.money import Money
from growth.units.resources import amount_of

# The label by which a reserved offering says whose reservation it is ends so, whatever the cloud.
_RESERVATION_SUFFIX: Final = "reservation-id"


class CatalogueError(ValueError):
    """The file cannot be used; the message names file, entry, field and reason."""


def load(path: pathlib.Path, *, cloud: str, currency: str) -> Catalogue:
    """The catalogue in a file. Prices are in `currency`: the format does not say."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise CatalogueError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise CatalogueError(f"{path}: is not text: {error.reason} at byte {error.start}") from error
    return parse(text, source=str(path), cloud=cloud, currency=currency)


def parse(text: str, *, source: str, cloud: str, currency: str) -> Catalogue:
    """The same from a text; `source` is what errors call it."""
    listed = _document(text, source)
    if not isinstance(listed, list):
        raise CatalogueError(f"{source}: must be a list of instance types, but is {_kind(listed)}")
    if not listed:
        raise CatalogueError(f"{source}: holds no instance type")
    types: list[InstanceType] = []
    seen: dict[str, int] = {}
    for index, entry in enumerate(listed):
        kind = _Entry(entry, f"{source}: entry {index}", currency).read()
        if kind.name in seen:
            raise CatalogueError(
                f"{source}: entry {index} ({kind.name}): name is already that of entry {seen[kind.name]}"
            )
        seen[kind.name] = index
        types.append(kind)
    return Catalogue(cloud, currency, tuple(types))


def _document(text: str, source: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        if text.lstrip()[:1] in {"[", "{"} and not source.endswith((".yaml", ".yml")):
            where = f"line {error.lineno} column {error.colno}"
            raise CatalogueError(f"{source}: is not JSON: {error.msg} at {where}") from error
    import yaml  # noqa: PLC0415 - only where a file is no JSON

    try:
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - safe loaders both
    except yaml.YAMLError as error:
        raise CatalogueError(f"{source}: is neither JSON nor YAML: {' '.join(str(error).split())}") from error


def _kind(value: object) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case _:
            return "an object"


class _Fields:
    """The fields of an object, whatever the case of their names."""

    def __init__(self, value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise CatalogueError(f"{where}: must be an object, but is {_kind(value)}")
        self._fields = {str(name).lower(): (str(name), inner) for name, inner in value.items()}
        self.where = where

    def has(self, name: str) -> bool:
        return self._fields.get(name.lower(), ("", None))[1] is not None

    def get(self, name: str, kind: type, words: str) -> Any:
        found = self._fields.get(name.lower(), ("", None))[1]
        if found is None:
            raise CatalogueError(f"{self.where}: {name} is missing: write {words}")
        if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
            raise CatalogueError(f"{self.where}: {name} must be {words}, but is {_kind(found)}")
        return found

    def text(self, name: str) -> str:
        found: str = self.get(name, str, "a text")
        if not found:
            raise CatalogueError(f"{self.where}: {name} is empty")
        return found


class _Entry:
    """One type on its way from JSON."""

    def __init__(self, value: object, where: str, currency: str) -> None:
        self._currency = currency
        self._fields = _Fields(value, where)
        self._name = self._fields.text("name")
        self._fields.where = f"{where} ({self._name})"

    def read(self) -> InstanceType:
        fields = self._fields
        systems = fields.get("operatingSystems", list, 'a list such as ["linux"]')
        if not systems or not all(isinstance(each, str) and each for each in systems):
            raise CatalogueError(f'{fields.where}: operatingSystems must name at least one system, such as ["linux"]')
        resources = self._resources()
        return InstanceType(
            name=self._name,
            labels={
                names.ARCH_LABEL: (fields.text("architecture"),),
                names.OS_LABEL: tuple(dict.fromkeys(systems)),
                **labels_of(self._name, cores=resources["cpu"], memory=resources["memory"]),
            },
            capacity={"pods": DEFAULT_PODS, **resources},
            offerings=tuple(self._offerings()),
            overhead=OVERHEAD,
        )

    def _resources(self) -> dict[str, int]:
        given = self._fields.get("resources", dict, "an object such as {cpu: 4, memory: 16Gi}")
        result: dict[str, int] = {}
        for name, quantity in given.items():
            where = f"{self._fields.where}: resources.{name}"
            if isinstance(quantity, bool) or not isinstance(quantity, str | int | float):
                raise CatalogueError(f"{where}: must be a quantity such as 500m or 16Gi, but is {_kind(quantity)}")
            try:
                amount = amount_of(name, quantity)
            except QuantityError as error:
                raise CatalogueError(f"{where}: {str(error).removeprefix(f'{name}: ')}") from error
            if amount < 0:
                raise CatalogueError(f"{where}: {quantity} is less than nothing")
            result[name] = amount
        for name in ("cpu", "memory"):
            if name not in result:
                raise CatalogueError(f"{self._fields.where}: resources.{name} is missing: say how much the type has")
        return result

    def _offerings(self) -> Iterator[Offering]:
        listed = self._fields.get("offerings", list, "a list of offerings")
        if not listed:
            raise CatalogueError(f"{self._fields.where}: offerings is empty: list at least one")
        for index, each in enumerate(listed):
            fields = _Fields(each, f"{self._fields.where}: offerings[{index}]")
            price = self._price(fields)
            available = fields.get("Available", bool, "true or false") if fields.has("Available") else True
            labels = dict(self._labels(fields))
            terms, zones = labels.pop(names.CAPACITY_TYPE_LABEL), labels.pop(names.ZONE_LABEL)
            places = (
                fields.get("ReservationCapacity", int, "a whole number") if fields.has("ReservationCapacity") else 0
            )
            for zone in zones:
                for term in terms:
                    yield Offering(
                        zone,
                        term,
                        price,
                        available=available,
                        reservation=self._reservation(labels, zone) if term == names.RESERVED else "",
                        reservation_capacity=places,
                        labels=labels,
                    )

    def _reservation(self, labels: Mapping[str, tuple[str, ...]], zone: str) -> str:
        """Whose places a reserved offering takes; without a label for it, it is a reservation of its own."""
        for key, values in labels.items():
            if key.endswith(_RESERVATION_SUFFIX):
                return values[0]
        return f"{self._name}/{zone}"

    def _price(self, fields: _Fields) -> int:
        amount = fields.get("Price", object, "a number such as 0.0425")
        try:
            price = Money.parse(amount, self._currency).nano
        except MoneyError as error:
            raise CatalogueError(f"{fields.where}: Price: {error}") from error
        if price < 0:
            raise CatalogueError(f"{fields.where}: Price {amount} is less than nothing")
        return price

    def _labels(self, fields: _Fields) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Label → values, zone and capacity type among them."""
        if not fields.has("Requirements"):
            yield names.ZONE_LABEL, (fields.text("zone"),)
            yield names.CAPACITY_TYPE_LABEL, (fields.text("capacityType"),)
            return
        seen: set[str] = set()
        for index, each in enumerate(fields.get("Requirements", list, "a list of requirements")):
            one = _Fields(each, f"{fields.where}.Requirements[{index}]")
            key, operator = one.text("key"), one.text("operator")
            values = one.get("values", list, "a list of texts")
            if operator != "In":
                raise CatalogueError(
                    f"{one.where}: operator must be In, because an offering has values, but is {operator}"
                )
            if not values or not all(isinstance(value, str) and value for value in values):
                raise CatalogueError(f"{one.where}: values must list at least one text")
            key = names.NORMALISED_LABELS.get(key, key)
            if key in seen:
                raise CatalogueError(f"{one.where}: key {key} is there twice")
            seen.add(key)
            yield key, tuple(values)
        for key in (names.ZONE_LABEL, names.CAPACITY_TYPE_LABEL):
            if key not in seen:
                raise CatalogueError(f"{fields.where}: Requirements lack {key}: every offering has one")
