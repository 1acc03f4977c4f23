"""A machine as the rest of Growth sees it, from what the vendor says of it. Pure."""

from growth.api import names
from growth.api.clouds import CloudMachine
from growth.api.instance_types import Catalogue
from growth.providers.catalogues.hetzner import CSI_LOCATION_LABEL
from growth.providers.hetzner import labels
from growth.providers.hetzner.wire import Server


def shown(server: Server, sold: Catalogue) -> CloudMachine:
    """Of a type that is no longer sold the size is not known, and left out."""
    type_name = server.server_type.name if server.server_type is not None else ""
    place = server.location.name if server.location is not None else ""
    kind = next((each for each in sold.types if each.name == type_name), None)
    known = {key: values[0] for key, values in kind.labels.items() if len(values) == 1} if kind is not None else {}
    placed = {names.ZONE_LABEL: place, names.REGION_LABEL: place, CSI_LOCATION_LABEL: place} if place else {}
    return CloudMachine(
        provider_id=labels.provider_id(server.id),
        claim=server.labels.get(labels.CLAIM, ""),
        claim_uid=server.labels.get(labels.CLAIM_UID, ""),
        instance_type=type_name,
        zone=place,
        capacity_type=names.ON_DEMAND,
        image_id=image_of(server),
        labels={
            **known,
            **placed,
            **({names.INSTANCE_TYPE_LABEL: type_name} if type_name else {}),
            names.CAPACITY_TYPE_LABEL: names.ON_DEMAND,
        },
        capacity=kind.capacity if kind is not None else {},
        allocatable=kind.allocatable if kind is not None else {},
        created=server.created,
        deleting=server.status == labels.DELETING,
        stopped=server.status == labels.OFF,
    )


def image_of(server: Server) -> str:
    """The number of the image that it was bought with; a machine may outlive its image."""
    return server.labels.get(labels.IMAGE) or (str(server.image.id) if server.image is not None else "")
