"""Where a kind lives in the API, and the struct that it is read into.

`Kind` is the key of every call on `growth.kube.api.Api`. A kind's constant stands beside its struct (`pods.POD`,
`karpenter.NODE_CLAIM`, …). `kind.raw` is the same place read into plain dicts, for those who must not lose a field.
"""

import dataclasses
from typing import Any, Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)

Json = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Kind(Generic[T_co]):
    """One kind of object: `group` is empty for the core group; `type` is the struct, or dict for raw access."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    type: type[T_co]

    @property
    def api_version(self) -> str:
        """As written in an object's `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def raw(self) -> "Kind[Json]":
        """The same kind, read into plain dicts with every field that the server sent."""
        return Kind(self.group, self.version, self.kind, self.plural, self.namespaced, dict)

    def path(self, name: str = "", *, namespace: str = "", subresource: str = "") -> str:
        """The URL path of one object, of a namespace's collection, or (both empty) of all namespaces."""
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part]
        return "/".join(parts)

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural
