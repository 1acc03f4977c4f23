"""Node classes: how a cloud is to make the machines of a pool.

HetznerNodeClass is ours; LinodeNodeClass and KWOKNodeClass have the fields of the providers that their users know.
"""

import datetime as dt
from typing import Annotated, ClassVar, Final, TypeAlias

from growth.api import names
from growth.api.karpenter import Duration
from growth.api.kinds import Kind
from growth.api.meta import CONDITIONS, Condition, ObjectMeta, ResourceList, Struct
from growth.api.schema import Rule, Schema

# --- KWOK


class KWOKNodeClassSpec(Struct, frozen=True):
    node_registration_delay: Annotated[
        Duration | None, Schema("How long a simulated machine takes from its creation to its Node.")
    ] = None


class KWOKNodeClassStatus(Struct, frozen=True):
    conditions: Annotated[tuple[Condition, ...], CONDITIONS] = ()


KWOK_READY: Final = Condition(
    type=names.READY,
    status="True",
    reason=names.READY,
    last_transition_time=dt.datetime(2024, 1, 1, 1, 1, 1, tzinfo=dt.UTC),
)


class KWOKNodeClass(Struct, frozen=True):
    """Simulated machines. There is nothing to check, so a class is ready from its creation."""

    metadata: ObjectMeta = ObjectMeta()
    spec: KWOKNodeClassSpec = KWOKNodeClassSpec()
    status: Annotated[
        KWOKNodeClassStatus,
        Schema(
            default={
                "conditions": [
                    {
                        "type": "Ready",
                        "status": "True",
                        "reason": "Ready",
                        "message": "",
                        "lastTransitionTime": "2024-01-01T01:01:01Z",
                    }
                ]
            }
        ),
    ] = KWOKNodeClassStatus(conditions=(KWOK_READY,))


# --- Hetzner

# Hetzner's things have a number and a name; either will do.
NumberOrName: TypeAlias = int | str


class HetznerImage(Struct, frozen=True):
    schema: ClassVar = Schema(
        "The image of the machines: by name, or the newest that the selector finds for the architecture.",
        rules=(
            Rule(
                "has(self.name) != has(self.selector)",
                "exactly one of name and selector must be set: a selector finds the newest image by its labels",
                field=".name",
            ),
        ),
    )

    name: Annotated[str | None, Schema("The image's name.", min_length=1)] = None
    selector: Annotated[str | None, Schema("A label selector in Hetzner's syntax.", min_length=1)] = None


class HetznerPublicNet(Struct, frozen=True):
    ipv4: Annotated[
        bool, Schema("Whether the machines get a public IPv4 address, which costs extra.", default=True)
    ] = True
    ipv6: Annotated[bool, Schema("Whether the machines get a public IPv6 network.", default=True)] = True


class SecretReference(Struct, frozen=True):
    """Secrets are read from Growth's own namespace, so that a class cannot reach into others."""

    name: Annotated[str, Schema("The Secret, in Growth's namespace.", min_length=1, max_length=253)]


class HetznerUserData(Struct, frozen=True):
    mode: Annotated[
        str,
        Schema(
            "How the machine joins the cluster; raw passes the Secret's text on.",
            enum=("k3s", "kubeadm", "talos", "raw"),
        ),
    ]
    secret_ref: Annotated[SecretReference, Schema("The Secret with what joining needs.")]
    cloud_provider: Annotated[
        str,
        Schema(
            "external: a cloud controller manager initialises the Nodes; none: there is no such controller.",
            enum=("external", "none"),
            default="external",
        ),
    ] = "external"


class HetznerInventoryMachine(Struct, frozen=True):
    """A dedicated machine that the operator already owns; Growth neither orders nor cancels such machines."""

    name: Annotated[str, Schema("The machine's name, and its Node's.", min_length=1, max_length=63)]
    server_number: Annotated[int, Schema("Its number at Hetzner Robot.", format="int64", minimum=1)]
    server_type: Annotated[
        str,
        Schema(
            "Its type, such as GEX44 or AX41-NVMe.",
            min_length=1,
            max_length=63,
            pattern=r"^[A-Za-z0-9]([-A-Za-z0-9._]*[A-Za-z0-9])?$",
        ),
    ]
    capacity: Annotated[
        ResourceList,
        Schema("What it has: cpu, memory, ephemeral-storage, and devices. Of GEX44 it is known.", max_properties=32),
    ] = {}
    architecture: Annotated[str | None, Schema("Its processor's; of GEX44 it is known.", enum=("amd64", "arm64"))] = (
        None
    )
    location: Annotated[
        str | None,
        Schema(
            "Where it stands, such as fsn1: the zone and the region of its Node.",
            min_length=1,
            max_length=63,
            pattern=r"^[A-Za-z0-9]([-A-Za-z0-9._]*[A-Za-z0-9])?$",
        ),
    ] = None
    monthly_price: Annotated[
        str | None,
        Schema(
            "What it costs a month, in EUR, net; of GEX44 the list price is known.", pattern=r"^\d{1,9}(\.\d{1,9})?$"
        ),
    ] = None


class HetznerNodeClassSpec(Struct, frozen=True):
    """Without `locations` every location that sells the type is allowed."""

    locations: Annotated[
        tuple[str, ...],
        Schema("Where machines may be bought; none means everywhere.", list_type="set", items=Schema(min_length=1)),
    ] = ()
    image: Annotated[HetznerImage | None, Schema()] = None
    ssh_keys: Annotated[tuple[NumberOrName, ...], Schema("SSH keys of the machines.", list_type="atomic")] = ()
    networks: Annotated[tuple[NumberOrName, ...], Schema("Private networks of the machines.", list_type="atomic")] = ()
    firewalls: Annotated[tuple[NumberOrName, ...], Schema("Firewalls of the machines.", list_type="atomic")] = ()
    placement_group: Annotated[
        str,
        Schema("Spread keeps machines on different hosts, ten to a group.", enum=("Spread", "None"), default="None"),
    ] = "None"
    public_net: Annotated[HetznerPublicNet, Schema("Public addresses.")] = HetznerPublicNet()
    backups: Annotated[bool, Schema("Whether the machines are backed up, which costs a fifth more.")] = False
    max_pods: Annotated[
        int | None,
        Schema("At most this many pods on a node; 110 where nothing is said.", format="int32", minimum=1, maximum=1000),
    ] = None
    labels: Annotated[
        dict[str, str],
        Schema(
            "Labels of the machines at Hetzner.",
            max_properties=64,
            items=Schema(max_length=63),
            rules=(
                Rule(
                    "self.all(x, !x.contains('hetzner.cloud') && !x.startsWith('growth.dev/'))",
                    "labels with hetzner.cloud in them are Hetzner's own and those below growth.dev/ are Growth's:"
                    " use another domain",
                ),
            ),
        ),
    ] = {}
    user_data: Annotated[HetznerUserData | None, Schema("How the machines join the cluster.")] = None
    inventory: Annotated[
        tuple[HetznerInventoryMachine, ...],
        Schema(
            "Dedicated machines that you own already; they are claimed and given back, never ordered.",
            max_items=1000,
            list_type="map",
            list_map_keys=("name",),
        ),
    ] = ()


class LearnedType(Struct, frozen=True):
    """What Nodes of a type reported, whoever sells it. The least of all of them counts: what fits there fits on each."""

    name: Annotated[str, Schema("The type of machine.", min_length=1, max_length=63)]
    hash: Annotated[
        str, Schema("Of the class as the Nodes were made by it; those of an older one count no longer.")
    ] = ""
    capacity: Annotated[ResourceList, Schema("What such a Node has.")] = {}
    allocatable: Annotated[ResourceList, Schema("What of it is left for pods.")] = {}


LEARNED_TYPES: Final = Schema(
    "What Nodes of each type of machine turned out to hold, which is less than is advertised.",
    max_items=200,
    list_type="map",
    list_map_keys=("name",),
)


class HetznerNodeClassStatus(Struct, frozen=True):
    conditions: Annotated[tuple[Condition, ...], CONDITIONS] = ()
    learned_types: Annotated[tuple[LearnedType, ...], LEARNED_TYPES] = ()


class HetznerNodeClass(Struct, frozen=True):
    """How machines are made at Hetzner."""

    spec: HetznerNodeClassSpec
    metadata: ObjectMeta = ObjectMeta()
    status: HetznerNodeClassStatus = HetznerNodeClassStatus()


KWOK_NODE_CLASS: Final = Kind(
    names.KWOK_CLASS_GROUP, "v1alpha1", "KWOKNodeClass", "kwoknodeclasses", namespaced=False, type=KWOKNodeClass
)
HETZNER_NODE_CLASS: Final = Kind(
    names.GROWTH, "v1alpha1", "HetznerNodeClass", "hetznernodeclasses", namespaced=False, type=HetznerNodeClass
)
