"""The rules of names, labels, annotations, owners and finalizers, with the server's words."""

import re
from collections.abc import Iterator
from typing import Any, Final

from growth.api.kinds import Json
from growth.kube.memory.fields import (
    FieldError,
    forbidden_value,
    invalid_value,
    required,
    too_long,
)

LABEL_LIMIT: Final = 63
SUBDOMAIN_LIMIT: Final = 253
ANNOTATIONS_LIMIT: Final = 256 * 1024  # bytes of all keys and values together

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_LABEL_1035: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_NAME_PART: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", re.ASCII)
_LABEL_VALUE: Final = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?", re.ASCII)

LABEL_TEXT: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
LABEL_1035_TEXT: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN_TEXT: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_NAME_PART_TEXT: Final = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_QUALIFIED_TEXT: Final = (
    "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' "
    "(e.g. 'example.com/MyName')"
)
_LABEL_VALUE_TEXT: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def subdomain_faults(name: str) -> list[str]:
    """What keeps the name from being a DNS subdomain, the rule of most kinds."""
    faults = [f"must be no more than {SUBDOMAIN_LIMIT} bytes"] if len(name) > SUBDOMAIN_LIMIT else []
    return faults if _SUBDOMAIN.fullmatch(name) else [*faults, SUBDOMAIN_TEXT]


def label_faults(name: str) -> list[str]:
    """What keeps the name from being a DNS label, the rule of namespaces, containers and ports."""
    faults = [f"must be no more than {LABEL_LIMIT} bytes"] if len(name) > LABEL_LIMIT else []
    return faults if _LABEL.fullmatch(name) else [*faults, LABEL_TEXT]


def label_1035_faults(name: str) -> list[str]:
    """What keeps the name from being a DNS label that starts with a letter, the rule of services."""
    faults = [f"must be no more than {LABEL_LIMIT} bytes"] if len(name) > LABEL_LIMIT else []
    return faults if _LABEL_1035.fullmatch(name) else [*faults, LABEL_1035_TEXT]


def path_segment_faults(name: str) -> list[str]:
    """What keeps the name from standing in a path, the only rule of roles and their bindings."""
    if name in {".", ".."}:
        return [f"may not be '{name}'"]
    return [f"may not contain '{character}'" for character in "/%" if character in name]


def qualified_name_faults(key: str) -> list[str]:
    """What is wrong with a label key, a taint key, a resource name."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        return [_QUALIFIED_TEXT]
    faults: list[str] = []
    if slash and not prefix:
        faults.append("prefix part must be non-empty")
    elif slash:
        faults += [f"prefix part {fault}" for fault in subdomain_faults(prefix)]
    if not name:
        faults.append("name part must be non-empty")
    elif len(name) > LABEL_LIMIT:
        faults.append(f"name part must be no more than {LABEL_LIMIT} bytes")
    if not _NAME_PART.fullmatch(name):
        faults.append(_NAME_PART_TEXT)
    return faults


def label_value_faults(value: str) -> list[str]:
    faults = [f"must be no more than {LABEL_LIMIT} bytes"] if len(value) > LABEL_LIMIT else []
    return faults if _LABEL_VALUE.fullmatch(value) else [*faults, _LABEL_VALUE_TEXT]


_sound: set[tuple[str, str]] = set()  # label pairs that passed; the same few occur in every object
_SOUND_LIMIT: Final = 100_000


def label_errors(labels: Any, field: str) -> Iterator[FieldError]:
    """What is wrong with a map of labels."""
    for key, value in labels.items():
        if (key, value) in _sound:
            continue
        wrong = [invalid_value(field, key, fault) for fault in qualified_name_faults(key)]
        wrong += [invalid_value(field, value, fault) for fault in label_value_faults(value)]
        if not wrong and len(_sound) < _SOUND_LIMIT:
            _sound.add((key, value))
        yield from wrong


def annotation_errors(annotations: Any, field: str) -> Iterator[FieldError]:
    """What is wrong with a map of annotations."""
    size = 0
    for key, value in annotations.items():
        size += len(key.encode()) + len(value.encode())
        if (key, "") in _sound:
            continue
        wrong = [invalid_value(field, key, fault) for fault in qualified_name_faults(key.lower())]
        if not wrong and len(_sound) < _SOUND_LIMIT:
            _sound.add((key, ""))
        yield from wrong
    if size > ANNOTATIONS_LIMIT:
        yield too_long(field, ANNOTATIONS_LIMIT)


def owner_errors(owners: Any, field: str) -> Iterator[FieldError]:
    """What is wrong with a list of owner references."""
    controllers: list[str] = []
    for index, owner in enumerate(owners):
        place = f"{field}[{index}]"
        if not owner.get("apiVersion"):
            yield invalid_value(f"{place}.apiVersion", "", "version must not be empty")
        for name in ("kind", "name", "uid"):
            if not owner.get(name):
                yield invalid_value(f"{place}.{name}", "", "must not be empty")
        if owner.get("controller"):
            controllers.append(f"{owner.get('kind', '')}/{owner.get('name', '')}")
    if len(controllers) > 1:
        yield invalid_value(
            field,
            owners,
            'Only one reference can have Controller set to true. Found "true" in references for '
            f"{controllers[0]} and {controllers[1]}",
        )


def finalizer_errors(finalizers: Any, field: str) -> Iterator[FieldError]:
    """What is wrong with a list of finalizers; a name without a domain is only for Kubernetes itself."""
    for index, finalizer in enumerate(finalizers):
        faults = qualified_name_faults(finalizer)
        if not faults and "/" not in finalizer and finalizer not in {"orphan", "foregroundDeletion", "kubernetes"}:
            faults = ["name is neither a standard finalizer name nor is it fully qualified"]
        for fault in faults:
            yield invalid_value(f"{field}[{index}]" if "/" in finalizer else field, finalizer, fault)


def metadata_errors(metadata: Json, old: Json | None) -> Iterator[FieldError]:
    """What is wrong with an object's metadata apart from its name; what did not change is not looked at again."""
    was: Json = old or {}
    for name, check in (
        ("labels", label_errors),
        ("annotations", annotation_errors),
        ("ownerReferences", owner_errors),
        ("finalizers", finalizer_errors),
    ):
        value = metadata.get(name)
        if value and value is not was.get(name):
            yield from check(value, f"metadata.{name}")
    if old is None:
        return
    for name in ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"):
        if metadata.get(name) != old.get(name):
            yield invalid_value(f"metadata.{name}", metadata.get(name), "field is immutable")
    if old.get("deletionTimestamp"):
        known = old.get("finalizers") or ()
        added = [one for one in metadata.get("finalizers") or () if one not in known]
        if added:
            listed = ", ".join(f'"{one}"' for one in added)
            yield forbidden_value(
                "metadata.finalizers",
                "no new finalizers can be added if the object is being deleted, "
                f"found new finalizers []string{{{listed}}}",
            )


def name_errors(metadata: Json, faults: Any) -> Iterator[FieldError]:
    """What is wrong with a new object's name; `faults` is the rule of its kind."""
    name = metadata.get("name") or ""
    if not name:
        yield required("metadata.name", "name or generateName is required")
        return
    for fault in faults(name):
        yield invalid_value("metadata.name", name, fault)
