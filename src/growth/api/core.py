"""The small kinds of the core group: namespaces, and what settings, secrets and machines of KWOK are kept in."""

from typing import Final

from growth.api.kinds import Kind
from growth.api.meta import ObjectMeta, Struct


class NamespaceStatus(Struct, frozen=True):
    phase: str = ""


class Namespace(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    status: NamespaceStatus = NamespaceStatus()


class ConfigMap(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    data: dict[str, str] = {}


class Secret(Struct, frozen=True):
    """Values are bytes, base64 on the wire. `repr` shows the keys only, so that no log can hold a value."""

    metadata: ObjectMeta = ObjectMeta()
    type: str = ""
    data: dict[str, bytes] = {}

    def __repr__(self) -> str:
        return f"Secret({self.metadata.namespace}/{self.metadata.name}, keys={sorted(self.data)})"


class ServiceSpec(Struct, frozen=True):
    selector: dict[str, str] = {}


class Service(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ServiceSpec = ServiceSpec()


NAMESPACE: Final = Kind("", "v1", "Namespace", "namespaces", namespaced=False, type=Namespace)
CONFIG_MAP: Final = Kind("", "v1", "ConfigMap", "configmaps", namespaced=True, type=ConfigMap)
SECRET: Final = Kind("", "v1", "Secret", "secrets", namespaced=True, type=Secret)
SERVICE: Final = Kind("", "v1", "Service", "services", namespaced=True, type=Service)
