"""Objects that every API server with our definitions must refuse, each with one fault, and the field that it must name.

`BAD_OBJECTS` are refused when they are created; `BAD_CHANGES` are good objects that must not be changed so.
"""

from typing import Any, Final, NamedTuple

from growth.api import buffers, decisions, growthpools, karpenter, linodeclasses, nodeclasses, overlays
from growth.api.kinds import Json, Kind
from tests.good_objects import AMD64, EC2_CLASS, need, node_claim, node_pool, obj, taint


class BadObject(NamedTuple):
    name: str
    kind: Kind[Any]
    object: Json
    field: str


class BadChange(NamedTuple):
    name: str
    kind: Kind[Any]
    before: Json
    after: Json
    field: str


REQUIREMENTS: Final = "spec.template.spec.requirements"
LABELS: Final = "spec.template.metadata.labels"


def _pools() -> list[tuple[str, Json, str]]:
    def needing(name: str, *requirements: Json, at: str) -> tuple[str, Json, str]:
        return name, node_pool(*requirements), f"{REQUIREMENTS}{at}"

    def labelled(name: str, key: str, value: str = "x", *, at: str = "") -> tuple[str, Json, str]:
        return name, node_pool(meta={"labels": {key: value}}), f"{LABELS}{at}"

    def disrupting(name: str, *, at: str, **disruption: Any) -> tuple[str, Json, str]:
        return name, node_pool(disruption=disruption), f"spec.disruption.{at}"

    def budgeting(name: str, *, at: str, **budget: Any) -> tuple[str, Json, str]:
        return name, node_pool(disruption={"budgets": [budget]}), f"spec.disruption.budgets[0]{at}"

    def classed(name: str, /, **parts: str) -> tuple[str, Json, str]:
        return (
            name,
            node_pool(node_class={**EC2_CLASS, **parts}),
            f"spec.template.spec.nodeClassRef.{next(iter(parts))}",
        )

    def tainted(name: str, *, at: str, **parts: Any) -> tuple[str, Json, str]:
        return name, node_pool(template={"taints": [{**taint("a"), **parts}]}), f"spec.template.spec.taints[0].{at}"

    def lived(name: str, **parts: Any) -> tuple[str, Json, str]:
        return name, node_pool(template=parts), f"spec.template.spec.{next(iter(parts))}"

    without_template = node_pool()
    del without_template["spec"]["template"]
    without_requirements = node_pool()
    del without_requirements["spec"]["template"]["spec"]["requirements"]
    without_class = node_pool()
    del without_class["spec"]["template"]["spec"]["nodeClassRef"]
    without_class_name = node_pool()
    del without_class_name["spec"]["template"]["spec"]["nodeClassRef"]["name"]
    return [
        ("without template", without_template, "spec.template"),
        ("without requirements", without_requirements, REQUIREMENTS),
        ("without node class", without_class, "spec.template.spec.nodeClassRef"),
        ("node class without name", without_class_name, "spec.template.spec.nodeClassRef.name"),
        classed("empty group of the node class", group=""),
        classed("group of the node class with a version", group="karpenter.k8s.aws/v1"),
        classed("empty kind of the node class", kind=""),
        classed("empty name of the node class", name=""),
        needing("In without values", need("a", "In"), at="[0].values"),
        needing("In with an empty list", {"key": "a", "operator": "In", "values": []}, at="[0].values"),
        needing("the second requirement is the bad one", AMD64, need("a", "In"), at="[1].values"),
        needing("Gt without values", need("a", "Gt"), at="[0].values"),
        needing("Lt with two values", need("a", "Lt", "1", "2"), at="[0].values"),
        needing("Gte with a word", need("a", "Gte", "many"), at="[0].values"),
        needing("Lte with a negative number", need("a", "Lte", "-1"), at="[0].values"),
        needing("Gt with a fraction", need("a", "Gt", "1.5"), at="[0].values"),
        needing("unknown operator", need("a", "Equals", "1"), at="[0].operator"),
        needing("operator in lower case", need("a", "in", "1"), at="[0].operator"),
        needing("without operator", {"key": "a"}, at="[0].operator"),
        needing("without key", {"operator": "Exists"}, at="[0].key"),
        needing("key with a space", need("a b", "Exists"), at="[0].key"),
        needing("empty key", need("", "Exists"), at="[0].key"),
        needing("key that is too long", need("a" * 317, "Exists"), at="[0].key"),
        needing("Gt with more than any machine has", need("a", "Gt", "9" * 19), at="[0].values"),
        needing("minValues of zero", need("a", "Exists", minValues=0), at="[0].minValues"),
        needing("minValues above fifty", need("a", "Exists", minValues=51), at="[0].minValues"),
        needing("minValues above the values", need("a", "In", "1", "2", minValues=3), at="[0].minValues"),
        needing("Karpenter's own label", need("karpenter.sh/registered", "Exists"), at="[0].key"),
        needing("a domain below Karpenter's", need("x.karpenter.sh/y", "Exists"), at="[0].key"),
        needing("the pool's own label", need("karpenter.sh/nodepool", "In", "a"), at="[0].key"),
        needing("the node's name", need("kubernetes.io/hostname", "In", "a"), at="[0].key"),
        needing("a hundred and one requirements", *(need(f"a{n}", "Exists") for n in range(101)), at=""),
        labelled("Karpenter's own label on nodes", "karpenter.sh/initialized"),
        labelled("the pool's own label on nodes", "karpenter.sh/nodepool"),
        labelled("the node's name as label", "kubernetes.io/hostname"),
        labelled("label value with a space", "a", "not valid", at=".a"),
        labelled("label value that is too long", "a", "x" * 64, at=".a"),
        tainted("unknown effect of a taint", effect="NoWay", at="effect"),
        tainted("empty key of a taint", key="", at="key"),
        tainted("key of a taint with a space", key="a b", at="key"),
        tainted("value of a taint with a space", value="a b", at="value"),
        (
            "startup taint without effect",
            node_pool(template={"startupTaints": [{"key": "a"}]}),
            "spec.template.spec.startupTaints[0].effect",
        ),
        lived("expireAfter in days", expireAfter="30d"),
        lived("expireAfter as a word", expireAfter="never"),
        lived("expireAfter as a number", expireAfter=30),
        lived("terminationGracePeriod of Never", terminationGracePeriod="Never"),
        disrupting("consolidateAfter that is negative", consolidateAfter="-5m", at="consolidateAfter"),
        disrupting("unknown consolidationPolicy", consolidationPolicy="Always", at="consolidationPolicy"),
        disrupting("unknown nodeLimitMode", nodeLimitMode="Maybe", at="nodeLimitMode"),
        disrupting("fifty-one budgets", budgets=[{"nodes": "1"}] * 51, at="budgets"),
        budgeting("budget above a hundred per cent", nodes="101%", at=".nodes"),
        budgeting("budget that is negative", nodes="-1", at=".nodes"),
        budgeting("budget as a number", nodes=5, at=".nodes"),
        budgeting("schedule without duration", nodes="1", schedule="@daily", at=".schedule"),
        budgeting("duration without schedule", nodes="1", duration="1h", at=".schedule"),
        budgeting("duration in seconds", nodes="1", schedule="@daily", duration="30s", at=".duration"),
        budgeting("schedule of four fields", nodes="1", schedule="* * * *", duration="1h", at=".schedule"),
        budgeting("schedule that is no word of cron", nodes="1", schedule="sometimes", duration="1h", at=".schedule"),
        budgeting("unknown reason", nodes="1", reasons=["Bored"], at=".reasons[0]"),
        budgeting("reason twice", nodes="1", reasons=["Empty", "Empty"], at=".reasons[1]"),
        ("weight of zero", node_pool(weight=0), "spec.weight"),
        ("weight above a hundred", node_pool(weight=101), "spec.weight"),
        ("limit that is no quantity", node_pool(limits={"cpu": "lots"}), "spec.limits.cpu"),
        ("limit as a fraction", node_pool(limits={"cpu": 1.5}), "spec.limits.cpu"),
        ("replicas that are negative", node_pool(replicas=-1), "spec.replicas"),
        ("replicas with a limit on cpu", node_pool(replicas=1, limits={"cpu": 1}), "spec.limits"),
        ("replicas with two limits", node_pool(replicas=1, limits={"nodes": 1, "cpu": 1}), "spec.limits"),
        ("replicas with weight", node_pool(replicas=1, weight=1), "spec.weight"),
    ]


def _claims() -> list[tuple[str, Json, str]]:
    without_class = node_claim()
    del without_class["spec"]["nodeClassRef"]
    return [
        ("claim without node class", without_class, "spec.nodeClassRef"),
        ("claim with Karpenter's own label", node_claim(need("karpenter.sh/x", "Exists")), "spec.requirements[0].key"),
        ("claim for a node's name", node_claim(need("kubernetes.io/hostname", "Exists")), "spec.requirements[0].key"),
        ("claim with In without values", node_claim(need("a", "In")), "spec.requirements[0].values"),
        ("claim with a bad taint", node_claim(taints=[taint("a", "Never")]), "spec.taints[0].effect"),
        ("claim with a bad expiry", node_claim(expireAfter="soon"), "spec.expireAfter"),
        (
            "claim with a request that is no quantity",
            node_claim(resources={"requests": {"cpu": "two"}}),
            "spec.resources.requests.cpu",
        ),
    ]


def _overlays() -> list[tuple[str, Json, str]]:
    def overlay(*requirements: Json, **spec: Any) -> Json:
        return obj(overlays.NODE_OVERLAY, {"requirements": list(requirements), **spec})

    return [
        ("overlay without requirements", obj(overlays.NODE_OVERLAY, {"price": "1"}), "spec.requirements"),
        ("overlay with both prices", overlay(price="1", priceAdjustment="+1"), "spec.price"),
        ("overlay with a price in euros", overlay(price="1 €"), "spec.price"),
        ("overlay with a price that is negative", overlay(price="-1"), "spec.price"),
        ("adjustment without its sign", overlay(priceAdjustment="5"), "spec.priceAdjustment"),
        ("adjustment below nothing", overlay(priceAdjustment="-101%"), "spec.priceAdjustment"),
        ("overlay that changes cpu", overlay(capacity={"cpu": 1}), "spec.capacity"),
        ("overlay that changes pods", overlay(capacity={"x/y": 1, "pods": 1}), "spec.capacity"),
        ("overlay of weight zero", overlay(weight=0), "spec.weight"),
        ("overlay of too much weight", overlay(weight=10001), "spec.weight"),
        ("overlay with NotIn without values", overlay(need("a", "NotIn")), "spec.requirements[0].values"),
        ("overlay with Gt and a word", overlay(need("a", "Gt", "x")), "spec.requirements[0].values"),
        ("overlay for a node's name", overlay(need("kubernetes.io/hostname", "Exists")), "spec.requirements[0].key"),
    ]


def _buffers() -> list[tuple[str, Json, str]]:
    def buffer(**spec: Any) -> Json:
        return obj(buffers.CAPACITY_BUFFER, spec)

    scalable = {"kind": "Deployment", "name": "a"}
    return [
        (
            "buffer with template and workload",
            buffer(podTemplateRef={"name": "a"}, scalableRef=scalable, replicas=1),
            "spec.scalableRef",
        ),
        ("buffer without a size", buffer(podTemplateRef={"name": "a"}), "spec.podTemplateRef"),
        ("buffer with an empty name", buffer(podTemplateRef={"name": ""}, replicas=1), "spec.podTemplateRef.name"),
        ("buffer with a workload of no kind", buffer(scalableRef={"name": "a"}), "spec.scalableRef.kind"),
        ("buffer of minus one", buffer(scalableRef=scalable, replicas=-1), "spec.replicas"),
        ("buffer of minus one per cent", buffer(scalableRef=scalable, percentage=-1), "spec.percentage"),
        (
            "buffer with a limit that is no quantity",
            buffer(scalableRef=scalable, limits={"cpu": "x"}),
            "spec.limits.cpu",
        ),
    ]


def _growth_pools() -> list[tuple[str, Json, str]]:
    def pool(*types: Json, **spec: Any) -> Json:
        return obj(growthpools.GROWTH_POOL, {"serverTypes": list(types) or [{"name": "cax11", "max": 1}], **spec})

    return [
        ("growth pool without types", obj(growthpools.GROWTH_POOL, {}), "spec.serverTypes"),
        ("growth pool with no type", obj(growthpools.GROWTH_POOL, {"serverTypes": []}), "spec.serverTypes"),
        ("type without max", pool({"name": "cax11"}), "spec.serverTypes[0].max"),
        ("type without name", pool({"max": 1}), "spec.serverTypes[0].name"),
        ("type with an empty name", pool({"name": "", "max": 1}), "spec.serverTypes[0].name"),
        ("type with max below min", pool({"name": "a", "min": 2, "max": 1}), "spec.serverTypes[0].max"),
        ("type with max below zero", pool({"name": "a", "max": -1}), "spec.serverTypes[0].max"),
        ("type with min below zero", pool({"name": "a", "min": -1, "max": 1}), "spec.serverTypes[0].min"),
        (
            "type with a priority in words",
            pool({"name": "a", "max": 1, "priority": "high"}),
            "spec.serverTypes[0].priority",
        ),
        ("type twice", pool({"name": "a", "max": 1}, {"name": "a", "max": 2}), "spec.serverTypes"),
        (
            "type twice but for its case",
            pool({"name": "CAX11", "max": 1}, {"name": "cax11", "max": 2}),
            "spec.serverTypes",
        ),
        ("unknown way to optimise", pool(optimise="Always"), "spec.optimise"),
        ("scaleDownAfter in days", pool(scaleDownAfter="1d"), "spec.scaleDownAfter"),
        (
            "growth pool with a budget in words",
            pool(disruption={"budgets": [{"nodes": "some"}]}),
            "spec.disruption.budgets[0].nodes",
        ),
        (
            "growth pool with a budget for an unknown reason",
            pool(disruption={"budgets": [{"nodes": "1", "reasons": ["Old"]}]}),
            "spec.disruption.budgets[0].reasons[0]",
        ),
        (
            "growth pool with a schedule without a duration",
            pool(disruption={"budgets": [{"nodes": "1", "schedule": "@daily"}]}),
            "spec.disruption.budgets[0].schedule",
        ),
        ("growth pool with a negative limit", pool(limits={"nodes": -1}), "spec.limits.nodes"),
        ("growth pool with its own label", pool(template={"labels": {"growth.dev/pool": "x"}}), "spec.template.labels"),
        (
            "growth pool with Karpenter's label",
            pool(template={"labels": {"karpenter.sh/nodepool": "x"}}),
            "spec.template.labels",
        ),
        (
            "growth pool with a bad taint",
            pool(template={"taints": [taint("a", "x")]}),
            "spec.template.taints[0].effect",
        ),
        (
            "growth pool with a class without kind",
            pool(nodeClassRef={"group": "growth.dev", "name": "a"}),
            "spec.nodeClassRef.kind",
        ),
    ]


def _requests() -> list[tuple[Kind[Any], str, Json, str]]:
    request, removal = growthpools.NODE_REQUEST, growthpools.NODE_REMOVAL_REQUEST
    return [
        (request, "request without offering", obj(request, {"pool": "a"}), "spec.targetOffering"),
        (request, "request without pool", obj(request, {"targetOffering": "hetzner-cax11"}), "spec.pool"),
        (
            request,
            "request for no cloud",
            obj(request, {"targetOffering": "cax11", "pool": "a"}),
            "spec.targetOffering",
        ),
        (
            request,
            "request in capitals",
            obj(request, {"targetOffering": "hetzner-CAX11", "pool": "a"}),
            "spec.targetOffering",
        ),
        (removal, "removal without reason", obj(removal, {"nodeName": "a"}), "spec.reason"),
        (removal, "removal for an unknown reason", obj(removal, {"nodeName": "a", "reason": "Old"}), "spec.reason"),
        (removal, "removal of nothing", obj(removal, {"reason": "Empty"}), "spec.nodeClaimName"),
        (removal, "removal of an empty name", obj(removal, {"reason": "Empty", "nodeName": ""}), "spec.nodeName"),
    ]


def _decisions() -> list[tuple[str, Json, str]]:
    def decision(**spec: Any) -> Json:
        return obj(decisions.DECISION, {"at": "2026-01-01T00:00:00Z", "controller": "a", "outcome": "Acted", **spec})

    return [
        ("decision at no time", decision(at="yesterday"), "spec.at"),
        ("decision of nobody", decision(controller=""), "spec.controller"),
        ("decision with an unknown outcome", decision(outcome="Perhaps"), "spec.outcome"),
        ("action without a verb", decision(actions=[{"object": "a"}]), "spec.actions[0].verb"),
        (
            "action with a price in words",
            decision(actions=[{"verb": "create", "price": "1 €"}]),
            "spec.actions[0].price",
        ),
        ("decision about no pod", decision(unschedulable=[{"pods": 0}]), "spec.unschedulable[0].pods"),
        ("decision with a long summary", decision(summary="a" * 1025), "spec.summary"),
    ]


def _hetzner() -> list[tuple[str, Json, str]]:
    def node_class(**spec: Any) -> Json:
        return obj(nodeclasses.HETZNER_NODE_CLASS, spec)

    machine = {"name": "a", "serverNumber": 1, "serverType": "GEX44"}
    return [
        ("image by name and selector", node_class(image={"name": "a", "selector": "b"}), "spec.image.name"),
        ("image by nothing", node_class(image={}), "spec.image.name"),
        ("location twice", node_class(locations=["fsn1", "fsn1"]), "spec.locations[1]"),
        ("unknown placement group", node_class(placementGroup="Pack"), "spec.placementGroup"),
        ("public address in words", node_class(publicNet={"ipv4": "yes"}), "spec.publicNet.ipv4"),
        ("Hetzner's own label", node_class(labels={"x.hetzner.cloud/y": "a"}), "spec.labels"),
        (
            "unknown mode of user data",
            node_class(userData={"mode": "rke", "secretRef": {"name": "a"}}),
            "spec.userData.mode",
        ),
        ("user data without a Secret", node_class(userData={"mode": "raw"}), "spec.userData.secretRef"),
        (
            "machine without its number",
            node_class(inventory=[{"name": "a", "serverType": "b"}]),
            "spec.inventory[0].serverNumber",
        ),
        *(
            (
                f"machine with {field} {value}",
                node_class(inventory=[{**machine, field: value}]),
                f"spec.inventory[0].{at}",
            )
            for field, value, at in (
                ("serverType", "AX 41", "serverType"),
                ("architecture", "sparc", "architecture"),
                ("monthlyPrice", "-1", "monthlyPrice"),
                ("monthlyPrice", "46 EUR", "monthlyPrice"),
                ("capacity", {"cpu": "many"}, "capacity.cpu"),
                ("location", "", "location"),
                ("location", "Falkenstein DC 14", "location"),
            )
        ),
        ("machine twice", node_class(inventory=[machine, machine]), "spec.inventory[1]"),
        ("SSH key that is neither number nor name", node_class(sshKeys=[1.5]), "spec.sshKeys[0]"),
    ]


def _linode() -> list[tuple[str, Json, str]]:
    def node_class(**spec: Any) -> Json:
        return obj(linodeclasses.LINODE_NODE_CLASS, spec)

    def kubelet(**settings: Any) -> Json:
        return node_class(kubelet=settings)

    return [
        ("disk without a size", node_class(osDisk={"label": "a"}), "spec.osDisk.size"),
        (
            "unknown file system",
            node_class(dataDisks={"sdb": {"size": 1, "filesystem": "zfs"}}),
            "spec.dataDisks.sdb.filesystem",
        ),
        ("encryption by yes", node_class(diskEncryption="yes"), "spec.diskEncryption"),
        ("tag twice", node_class(tags=["a", "a"]), "spec.tags[1]"),
        ("firewall in words", node_class(firewallID="a"), "spec.firewallID"),
        ("placement group without number", node_class(placementGroup={}), "spec.placementGroup.id"),
        ("pods below zero", kubelet(maxPods=-1), "spec.kubelet.maxPods"),
        ("reserve of an unknown resource", kubelet(kubeReserved={"gpu": "1"}), "spec.kubelet.kubeReserved"),
        ("reserve below zero", kubelet(systemReserved={"cpu": "-1"}), "spec.kubelet.systemReserved"),
        ("threshold below zero", kubelet(evictionHard={"memory.available": "-1Gi"}), "spec.kubelet.evictionHard"),
        ("unknown signal of eviction", kubelet(evictionHard={"memory": "5%"}), "spec.kubelet.evictionHard"),
        ("soft eviction without grace", kubelet(evictionSoft={"memory.available": "5%"}), "spec.kubelet.evictionSoft"),
        (
            "grace without soft eviction",
            kubelet(evictionSoftGracePeriod={"memory.available": "1m"}),
            "spec.kubelet.evictionSoftGracePeriod",
        ),
    ]


BAD_OBJECTS: Final = [
    *(BadObject(name, karpenter.NODE_POOL, bad, field) for name, bad, field in _pools()),
    *(BadObject(name, karpenter.NODE_CLAIM, bad, field) for name, bad, field in _claims()),
    *(BadObject(name, overlays.NODE_OVERLAY, bad, field) for name, bad, field in _overlays()),
    *(BadObject(name, buffers.CAPACITY_BUFFER, bad, field) for name, bad, field in _buffers()),
    *(BadObject(name, growthpools.GROWTH_POOL, bad, field) for name, bad, field in _growth_pools()),
    *(BadObject(name, kind, bad, field) for kind, name, bad, field in _requests()),
    *(BadObject(name, decisions.DECISION, bad, field) for name, bad, field in _decisions()),
    *(BadObject(name, nodeclasses.HETZNER_NODE_CLASS, bad, field) for name, bad, field in _hetzner()),
    *(BadObject(name, linodeclasses.LINODE_NODE_CLASS, bad, field) for name, bad, field in _linode()),
    BadObject(
        "registration delay in days",
        nodeclasses.KWOK_NODE_CLASS,
        obj(nodeclasses.KWOK_NODE_CLASS, {"nodeRegistrationDelay": "1d"}),
        "spec.nodeRegistrationDelay",
    ),
]


def _decision(summary: str) -> Json:
    spec = {"at": "2026-01-01T00:00:00Z", "controller": "a", "outcome": "Nothing", "summary": summary}
    return obj(decisions.DECISION, spec)


BAD_CHANGES: Final = [
    BadChange(
        "another group of node class",
        karpenter.NODE_POOL,
        node_pool(),
        node_pool(node_class={**EC2_CLASS, "group": "example.com"}),
        "spec.template.spec.nodeClassRef.group",
    ),
    BadChange(
        "another kind of node class",
        karpenter.NODE_POOL,
        node_pool(),
        node_pool(node_class={**EC2_CLASS, "kind": "Other"}),
        "spec.template.spec.nodeClassRef.kind",
    ),
    BadChange("replicas added", karpenter.NODE_POOL, node_pool(), node_pool(replicas=1), "spec.replicas"),
    BadChange("replicas removed", karpenter.NODE_POOL, node_pool(replicas=1), node_pool(), "spec.replicas"),
    BadChange("claim changed", karpenter.NODE_CLAIM, node_claim(), node_claim(AMD64), "spec"),
    BadChange(
        "request changed",
        growthpools.NODE_REQUEST,
        obj(growthpools.NODE_REQUEST, {"targetOffering": "hetzner-cax11", "pool": "a"}),
        obj(growthpools.NODE_REQUEST, {"targetOffering": "hetzner-cax21", "pool": "a"}),
        "spec",
    ),
    BadChange(
        "removal changed",
        growthpools.NODE_REMOVAL_REQUEST,
        obj(growthpools.NODE_REMOVAL_REQUEST, {"nodeName": "a", "reason": "Empty"}),
        obj(growthpools.NODE_REMOVAL_REQUEST, {"nodeName": "b", "reason": "Empty"}),
        "spec",
    ),
    BadChange("history rewritten", decisions.DECISION, _decision("a"), _decision("b"), "spec"),
    BadChange(
        "addresses of a Linode class changed",
        linodeclasses.LINODE_NODE_CLASS,
        obj(linodeclasses.LINODE_NODE_CLASS, {"ipv6Options": {"enableSLAAC": True}}),
        obj(linodeclasses.LINODE_NODE_CLASS, {"ipv6Options": {"enableSLAAC": False}}),
        "spec.ipv6Options.enableSLAAC",
    ),
]
