"""The strategy of a custom kind: its schema does the work."""

from collections.abc import Iterator

from growth.api.kinds import Json
from growth.kube.errors import BadRequest, MethodNotAllowed
from growth.kube.memory.custom import validation
from growth.kube.memory.custom.schema import Schema
from growth.kube.memory.fields import FieldError
from growth.kube.memory.resources import Generation, Lookup, Strategy, unchanged


class CustomStrategy(Strategy):
    """One version of a custom kind; `definition` is the CRD's name."""

    unconditional_update = False

    def __init__(self, schema: Schema | None, *, status: bool, definition: str) -> None:
        self._schema = schema
        self._definition = definition
        self.status = status
        self.generation = Generation.CONTENT_BUT_STATUS if status else Generation.CONTENT

    def prepare_create(self, new: Json) -> None:
        if self.status:
            new.pop("status", None)

    def admit(self, new: Json, *, cluster: Lookup) -> None:
        found = cluster.find("apiextensions.k8s.io", "customresourcedefinitions", self._definition)
        if found is not None and found["metadata"].get("deletionTimestamp"):
            raise MethodNotAllowed("create not allowed while custom resource definition is terminating")

    def default(self, new: Json, old: Json | None) -> None:
        if self._schema is None:
            return
        mine = {field: value for field, value in new.items() if not unchanged(new, old, field)}
        kept = [field for field in new if field not in mine]
        self._schema.prune(mine)
        self._schema.fill(mine)
        for field in list(new):
            if field not in mine and field not in kept:
                del new[field]
        new.update({field: value for field, value in mine.items() if field not in kept})

    def unknown_fields(self, new: Json) -> list[str]:
        """The paths of fields that pruning would remove; removes them."""
        dropped: list[str] = []
        if self._schema is not None:
            self._schema.prune(new, "", dropped)
        return dropped

    def prepare_status(self, new: Json, old: Json) -> None:
        """Only the status comes through; of the metadata nothing but the preconditions was looked at."""
        super().prepare_status(new, old)
        new["metadata"] = dict(old["metadata"])

    def validate(self, new: Json) -> Iterator[FieldError]:
        if self._schema is not None:
            yield from validation.errors(self._schema, new)

    def validate_update(self, new: Json, old: Json) -> Iterator[FieldError]:
        if self._schema is not None:
            yield from validation.errors(self._schema, new, old)

    def validate_status(self, new: Json, old: Json) -> Iterator[FieldError]:
        yield from self.validate_update(new, old)


def refuse_unknown(kind: str, version: str, paths: list[str]) -> None:
    """What strict field validation says to fields that the schema does not know."""
    if paths:
        listed = ", ".join(f'unknown field "{path}"' for path in paths)
        raise BadRequest(
            f'{kind} in version "{version}" cannot be handled as a {kind}: strict decoding error: {listed}'
        )
