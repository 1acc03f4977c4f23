"""The strategy of a custom kind: its schema does the work."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from growth.api.kinds import Json
from growth.kube.errors import MethodNotAllowed
from growth.kube.memory.custom import validation
from growth.kube.memory.custom.schema import Schema
from growth.kube.memory.fields import FieldError, invalid_value
from growth.kube.memory.resources import Generation, Lookup, ScalePaths, Strategy, unchanged

LARGEST_SCALE: Final = 2**31 - 1


class CustomStrategy(Strategy):
    """One version of a custom kind; `definition` is the CRD's name."""

    unconditional_update = False

    def __init__(
        self,
        schema: Schema | None,
        *,
        status: bool,
        definition: str,
        scale: ScalePaths | None = None,
        selectable: Iterable[tuple[str, ...]] = (),
    ) -> None:
        self._schema = schema
        self._scale = scale
        self._selectable = {".".join(path): path for path in selectable}
        self._definition = definition
        self.status = status
        self.generation = Generation.CONTENT_BUT_STATUS if status else Generation.CONTENT

    def selectable_fields(self) -> Mapping[str, tuple[str, ...]]:
        return self._selectable

    def prepare_create(self, new: Json) -> None:
        if self.status:
            new.pop("status", None)

    def admit(self, new: Json, *, cluster: Lookup) -> None:
        found = cluster.find("apiextensions.k8s.io", "customresourcedefinitions", self._definition)
        if found is not None and found["metadata"].get("deletionTimestamp"):
            raise MethodNotAllowed("create not allowed while custom resource definition is terminating")

    def prune(self, new: Json, old: Json | None, *, kind: str) -> list[str]:
        dropped: list[str] = []
        if self._schema is not None:
            mine = {field: value for field, value in new.items() if not unchanged(new, old, field)}
            given = list(mine)
            self._schema.prune(mine, "", dropped)
            for field in given:
                if field not in mine:
                    del new[field]
        return dropped

    def default(self, new: Json, old: Json | None) -> None:
        if self._schema is None:
            return
        mine = {field: value for field, value in new.items() if not unchanged(new, old, field)}
        kept = [field for field in new if field not in mine]
        given = list(mine)
        self._schema.fill(mine)
        for field in given:
            if field not in mine:
                del new[field]
        new.update({field: value for field, value in mine.items() if field not in kept})

    def prepare_status(self, new: Json, old: Json) -> None:
        """Only the status comes through; of the metadata nothing but the preconditions was looked at."""
        super().prepare_status(new, old)
        new["metadata"] = dict(old["metadata"])

    def validate(self, new: Json) -> Iterator[FieldError]:
        if self._schema is not None:
            yield from validation.errors(self._schema, new)
        yield from self._scale_errors(new)

    def validate_update(self, new: Json, old: Json) -> Iterator[FieldError]:
        if self._schema is not None:
            yield from validation.errors(self._schema, new, old)
        yield from self._scale_errors(new)

    def _scale_errors(self, new: Json) -> Iterator[FieldError]:
        """What keeps the replicas from being shown as a Scale; the server writes these paths with a dot before them."""
        for path in (self._scale.spec, self._scale.status) if self._scale is not None else ():
            value: Any = new
            for part in path:
                value = value.get(part) if isinstance(value, dict) else None
            if not isinstance(value, int) or isinstance(value, bool):
                continue  # absent, or complained of by the schema
            if value < 0:
                yield invalid_value("." + ".".join(path), value, "should be a non-negative integer")
            elif value > LARGEST_SCALE:
                yield invalid_value("." + ".".join(path), value, f"should be less than or equal to {LARGEST_SCALE}")

    def validate_status(self, new: Json, old: Json) -> Iterator[FieldError]:
        yield from self.validate_update(new, old)
