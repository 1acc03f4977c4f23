"""Workloads: Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs and CronJobs, and templates of pods by themselves."""

import copy
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from growth.api.kinds import Json
from growth.kube.memory.builtin import podspec, shapes
from growth.kube.memory.fields import FieldError, forbidden_value, invalid_value, not_supported, required
from growth.kube.memory.resources import Generation, Resource, ScalePaths, Strategy, keep_field, unchanged
from growth.kube.memory.selectors import label_selector

_STATEFUL_FREE: Final = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
_STATEFUL_TEXT: Final = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


_TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"


def _defaulted(template: Json | None) -> Json:
    """A template as it will be stored."""
    whole: Json = {"template": copy.deepcopy(template) if template else {}}
    _default_template(whole)
    return dict(whole["template"])


def _fill(where: Json, **defaults: Any) -> None:
    for name, value in defaults.items():
        if where.get(name) is None:
            where[name] = value


def _default_template(spec: Json) -> None:
    template = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    podspec.default_spec(template.setdefault("spec", {}), pod=False)


class WorkloadStrategy(Strategy):
    """What Deployments, ReplicaSets, StatefulSets and DaemonSets have in common."""

    status = True
    generation = Generation.SPEC
    kind = ""
    first_status: ClassVar[Json] = {}
    counts: ClassVar[tuple[str, ...]] = ()  # of the status, none above its replicas

    def prepare_create(self, new: Json) -> None:
        new["status"] = dict(self.first_status)

    def default(self, new: Json, old: Json | None) -> None:
        if unchanged(new, old, "spec"):
            return
        shapes.read(new, shapes.Workload, self.kind)
        spec = new["spec"] = dict(new.get("spec") or {})
        _default_template(spec)
        self.default_spec(spec)

    def default_spec(self, spec: Json) -> None:
        """The kind's own defaults."""
        _fill(spec, replicas=1)

    def validate(self, new: Json) -> Iterator[FieldError]:
        spec = shapes.read(new, shapes.Workload, self.kind).spec
        assert spec is not None
        raw = new["spec"]
        if spec.replicas is not None and spec.replicas < 0:
            yield invalid_value("spec.replicas", spec.replicas, "must be greater than or equal to 0")
        if (spec.min_ready_seconds or 0) < 0:
            yield invalid_value("spec.minReadySeconds", spec.min_ready_seconds, "must be greater than or equal to 0")
        template = raw.get("template") or {}
        labels = (template.get("metadata") or {}).get("labels") or {}
        selector = raw.get("selector")
        if selector is None:
            if self.kind != "DaemonSet":  # which only says that nothing matches
                yield required("spec.selector")
        elif not selector.get("matchLabels") and not selector.get("matchExpressions"):
            yield invalid_value("spec.selector", selector, f"empty selector is invalid for {self.kind.lower()}")
        if not label_selector(selector)(labels):
            yield invalid_value("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
        inner = spec.template.spec if spec.template is not None else None
        yield from podspec.spec_errors(inner, "spec.template.spec")
        if inner is not None and inner.restart_policy in {"Never", "OnFailure"}:
            yield not_supported("spec.template.spec.restartPolicy", inner.restart_policy, ("Always",))

    def validate_update(self, new: Json, old: Json) -> Iterator[FieldError]:
        if new["spec"] == old["spec"]:
            return
        yield from self.validate(new)
        if new["spec"].get("selector") != old["spec"].get("selector"):
            yield invalid_value("spec.selector", new["spec"].get("selector"), "field is immutable")

    def validate_status(self, new: Json, old: Json) -> Iterator[FieldError]:
        status = new.get("status") or {}
        for name, value in status.items():
            if isinstance(value, int) and value < 0:
                yield invalid_value(f"status.{name}", value, "must be greater than or equal to 0")
        for name in self.counts:
            if status.get(name, 0) > status.get("replicas", 0):
                yield invalid_value(f"status.{name}", status.get(name, 0), "cannot be greater than status.replicas")
        if "readyReplicas" in self.counts and status.get("availableReplicas", 0) > status.get("readyReplicas", 0):
            text = "cannot be greater than readyReplicas"
            yield invalid_value("status.availableReplicas", status["availableReplicas"], text)


class DeploymentStrategy(WorkloadStrategy):
    kind = "Deployment"
    generation = Generation.SPEC_OR_ANNOTATIONS
    counts: ClassVar[tuple[str, ...]] = ("updatedReplicas", "readyReplicas", "availableReplicas")

    def prepare_status(self, new: Json, old: Json) -> None:
        super().prepare_status(new, old)
        keep_field(new["metadata"], old["metadata"], "labels")

    def default_spec(self, spec: Json) -> None:
        _fill(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
        strategy = spec["strategy"] = dict(spec.get("strategy") or {})
        _fill(strategy, type="RollingUpdate")
        if strategy["type"] == "RollingUpdate":
            rolling = strategy["rollingUpdate"] = dict(strategy.get("rollingUpdate") or {})
            _fill(rolling, maxUnavailable="25%", maxSurge="25%")

    def validate(self, new: Json) -> Iterator[FieldError]:
        yield from super().validate(new)
        strategy = new["spec"]["strategy"]
        if strategy["type"] not in {"Recreate", "RollingUpdate"}:
            shown = {"Type": strategy["type"], "RollingUpdate": strategy.get("rollingUpdate")}
            yield not_supported("spec.strategy", shown, ("Recreate", "RollingUpdate"))
        elif strategy["type"] == "Recreate" and strategy.get("rollingUpdate"):
            text = "may not be specified when strategy `type` is 'Recreate'"
            yield forbidden_value("spec.strategy.rollingUpdate", text)
        rolling = strategy.get("rollingUpdate") or {}
        if {rolling.get("maxSurge"), rolling.get("maxUnavailable")} <= {0, "0%"} and rolling:
            place = "spec.strategy.rollingUpdate.maxUnavailable"
            yield invalid_value(place, rolling["maxUnavailable"], "may not be 0 when `maxSurge` is 0")


class ReplicaSetStrategy(WorkloadStrategy):
    kind = "ReplicaSet"
    counts: ClassVar[tuple[str, ...]] = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
    first_status: ClassVar[Json] = {"replicas": 0}


class StatefulSetStrategy(WorkloadStrategy):
    kind = "StatefulSet"
    counts: ClassVar[tuple[str, ...]] = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
    first_status: ClassVar[Json] = {"replicas": 0, "availableReplicas": 0}

    def default_spec(self, spec: Json) -> None:
        _fill(spec, replicas=1, podManagementPolicy="OrderedReady", revisionHistoryLimit=10, serviceName="")
        _fill(spec, persistentVolumeClaimRetentionPolicy={"whenDeleted": "Retain", "whenScaled": "Retain"})
        update = spec["updateStrategy"] = dict(spec.get("updateStrategy") or {})
        _fill(update, type="RollingUpdate")
        if update["type"] == "RollingUpdate":
            rolling = update["rollingUpdate"] = dict(update.get("rollingUpdate") or {})
            _fill(rolling, partition=0)
        for claim in spec.get("volumeClaimTemplates") or ():
            claim.setdefault("apiVersion", "v1")
            claim.setdefault("kind", "PersistentVolumeClaim")
            _fill(claim.setdefault("spec", {}), volumeMode="Filesystem")
            podspec.canonical((claim["spec"].get("resources") or {}).get("requests"))
            claim.setdefault("status", {"phase": "Pending"})

    def validate_update(self, new: Json, old: Json) -> Iterator[FieldError]:
        if new["spec"] == old["spec"]:
            return
        yield from self.validate(new)
        if _without(new["spec"], _STATEFUL_FREE) != _without(old["spec"], _STATEFUL_FREE):
            yield forbidden_value("spec", _STATEFUL_TEXT)


def _without(spec: Json, names: tuple[str, ...]) -> Json:
    return {key: value for key, value in spec.items() if key not in names}


class DaemonSetStrategy(WorkloadStrategy):
    kind = "DaemonSet"
    first_status: ClassVar[Json] = {
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
    }

    def prepare_create(self, new: Json) -> None:
        super().prepare_create(new)
        metadata = new["metadata"]
        annotations = metadata.get("annotations") or {}
        metadata["annotations"] = {**annotations, _TEMPLATE_GENERATION: "1"}

    def prepare_update(self, new: Json, old: Json) -> None:
        super().prepare_update(new, old)
        before = (old["metadata"].get("annotations") or {}).get(_TEMPLATE_GENERATION, "0")
        after = (new.get("spec") or {}).get("template")
        changed = after is not old["spec"]["template"] and _defaulted(after) != old["spec"]["template"]
        count = str(int(before) + 1) if changed else before
        metadata = new["metadata"]
        metadata["annotations"] = {**(metadata.get("annotations") or {}), _TEMPLATE_GENERATION: count}

    def default_spec(self, spec: Json) -> None:
        _fill(spec, revisionHistoryLimit=10)
        update = spec["updateStrategy"] = dict(spec.get("updateStrategy") or {})
        _fill(update, type="RollingUpdate")
        if update["type"] == "RollingUpdate":
            rolling = update["rollingUpdate"] = dict(update.get("rollingUpdate") or {})
            _fill(rolling, maxUnavailable=1, maxSurge=0)


class JobStrategy(Strategy):
    """Jobs; the labels and the selector with the job's uid are the API server's own work."""

    status = True
    generation = Generation.SPEC
    field_selectors: ClassVar[Mapping[str, tuple[str, ...]]] = {"status.successful": ("status", "succeeded")}

    def prepare_create(self, new: Json) -> None:
        new["status"] = {}

    def default(self, new: Json, old: Json | None) -> None:
        if unchanged(new, old, "spec"):
            return
        shapes.read(new, shapes.Job, "Job")
        spec = new["spec"] = dict(new.get("spec") or {})
        default_job_spec(spec)
        _fill(spec, manualSelector=False)

    def identify(self, new: Json) -> None:
        uid, name = new["metadata"]["uid"], new["metadata"]["name"]
        spec = new["spec"]
        if spec.get("manualSelector"):
            return
        labels = {
            "batch.kubernetes.io/controller-uid": uid,
            "batch.kubernetes.io/job-name": name,
            "controller-uid": uid,
            "job-name": name,
        }
        metadata = spec["template"]["metadata"]
        metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
        new["metadata"]["labels"] = {**metadata["labels"], **(new["metadata"].get("labels") or {})}
        spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}

    def validate(self, new: Json) -> Iterator[FieldError]:
        spec = shapes.read(new, shapes.Job, "Job").spec
        assert spec is not None
        yield from job_errors(spec, "spec")

    def validate_update(self, new: Json, old: Json) -> Iterator[FieldError]:
        if new["spec"] == old["spec"]:
            return
        yield from self.validate(new)
        for field in ("selector", "completionMode", "template", "completions"):
            if new["spec"].get(field) != old["spec"].get(field):
                yield invalid_value(f"spec.{field}", new["spec"].get(field), "field is immutable")


def default_job_spec(spec: Json) -> None:
    """A Job's defaults; the restart policy must be given, since the usual one is refused."""
    _default_template(spec)
    if spec.get("parallelism") is None and spec.get("completions") is None:
        _fill(spec, completions=1)
    _fill(spec, parallelism=1, backoffLimit=6, completionMode="NonIndexed", suspend=False)
    _fill(spec, podReplacementPolicy="TerminatingOrFailed")


def job_errors(spec: shapes.JobSpec, field: str) -> Iterator[FieldError]:
    for name, value in (("parallelism", spec.parallelism), ("completions", spec.completions)):
        if value is not None and value < 0:
            yield invalid_value(f"{field}.{name}", value, "must be greater than or equal to 0")
    inner = spec.template.spec if spec.template is not None else None
    place = f"{field}.template.spec"
    policy = inner.restart_policy if inner is not None else ""
    if policy not in {"OnFailure", "Never"}:
        yield required(f"{place}.restartPolicy", 'valid values: "OnFailure", "Never"')
    yield from (one for one in podspec.spec_errors(inner, place) if one.field != f"{place}.restartPolicy")


class CronJobStrategy(Strategy):
    status = True
    generation = Generation.SPEC

    def prepare_create(self, new: Json) -> None:
        new["status"] = {}

    def default(self, new: Json, old: Json | None) -> None:
        if unchanged(new, old, "spec"):
            return
        shapes.read(new, shapes.CronJob, "CronJob")
        spec = new["spec"] = dict(new.get("spec") or {})
        _fill(spec, concurrencyPolicy="Allow", suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)
        job = spec["jobTemplate"] = dict(spec.get("jobTemplate") or {})
        job.setdefault("metadata", {})
        inner = job["spec"] = dict(job.get("spec") or {})
        _default_template(inner)

    def validate(self, new: Json) -> Iterator[FieldError]:
        spec = shapes.read(new, shapes.CronJob, "CronJob").spec
        assert spec is not None
        fields = spec.schedule.split()
        if not fields:
            yield required("spec.schedule")
        elif len(fields) != 5 and not spec.schedule.startswith("@"):
            text = f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]"
            yield invalid_value("spec.schedule", spec.schedule, text)
        if spec.job_template is not None and spec.job_template.spec is not None:
            yield from job_errors(spec.job_template.spec, "spec.jobTemplate.spec")


class PodTemplateStrategy(Strategy):
    generation = Generation.CONTENT

    def default(self, new: Json, old: Json | None) -> None:
        if not unchanged(new, old, "template"):
            shapes.read(new, shapes.PodTemplate, "PodTemplate")
            _default_template(new)

    def validate(self, new: Json) -> Iterator[FieldError]:
        template = shapes.read(new, shapes.PodTemplate, "PodTemplate").template
        yield from podspec.spec_errors(template.spec if template is not None else None, "template.spec")

    def validate_update(self, new: Json, old: Json) -> Iterator[FieldError]:
        if new.get("template") != old.get("template"):
            yield from self.validate(new)


def _scaling(kind: str, plural: str, strategy: Strategy, short: str) -> Resource:
    scale = ScalePaths()
    return Resource("apps", "v1", kind, plural, True, strategy, kind.lower(), (short,), ("all",), scale)


RESOURCES = (
    _scaling("Deployment", "deployments", DeploymentStrategy(), "deploy"),
    _scaling("ReplicaSet", "replicasets", ReplicaSetStrategy(), "rs"),
    _scaling("StatefulSet", "statefulsets", StatefulSetStrategy(), "sts"),
    Resource("apps", "v1", "DaemonSet", "daemonsets", True, DaemonSetStrategy(), "daemonset", ("ds",), ("all",)),
    Resource("", "v1", "PodTemplate", "podtemplates", True, PodTemplateStrategy(), "podtemplate"),
    Resource("batch", "v1", "Job", "jobs", True, JobStrategy(), "job", (), ("all",)),
    Resource("batch", "v1", "CronJob", "cronjobs", True, CronJobStrategy(), "cronjob", ("cj",), ("all",)),
)
