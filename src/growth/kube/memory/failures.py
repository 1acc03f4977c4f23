"""Refusals, worded as the real server words them: each names the resource and the object.

What is wrong with single fields of an object is said by `growth.kube.memory.fields`.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from growth.kube import errors
from growth.kube.memory.fields import FieldError
from growth.kube.memory.resources import Resource


def invalid(resource: Resource, name: str, wrong: Iterable[FieldError]) -> errors.Invalid:
    """The refusal of an object; equal complaints are said once."""
    found = list(dict.fromkeys(wrong))
    texts = ", ".join(str(one) for one in found)
    details: dict[str, Any] = {"name": name, "group": resource.group, "kind": resource.kind}
    details = {key: value for key, value in details.items() if value}
    details["causes"] = [{"reason": one.reason, "message": one.detail, "field": one.field} for one in found]
    body = texts if len(found) == 1 else f"[{texts}]"
    shown = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    return errors.Invalid(f'{shown} "{name}" is invalid: {body}', details=details)


def bad_patch(text: str) -> errors.Invalid:
    """A patch whose result cannot be read. Unlike the real server we do not repeat the object, which may be a Secret."""
    cause = {"reason": "FieldValueInvalid", "message": f"Invalid value: {text}", "field": "patch"}
    return errors.Invalid(f' "" is invalid: patch: Invalid value: {text}', details={"causes": [cause]})


def _details(resource: Resource, name: str) -> dict[str, Any]:
    whole = {"name": name, "group": resource.group, "kind": resource.plural}
    return {key: value for key, value in whole.items() if value}


def not_found(resource: Resource, name: str) -> errors.NotFound:
    return errors.NotFound(f'{resource} "{name}" not found', details=_details(resource, name))


def no_resource() -> errors.NotFound:
    """The path names nothing that is served."""
    return errors.NotFound("the server could not find the requested resource")


def already_exists(resource: Resource, name: str) -> errors.AlreadyExists:
    return errors.AlreadyExists(f'{resource} "{name}" already exists', details=_details(resource, name))


def conflict(resource: Resource, name: str, text: str) -> errors.Conflict:
    return errors.Conflict(
        f'Operation cannot be fulfilled on {resource} "{name}": {text}', details=_details(resource, name)
    )


def modified(resource: Resource, name: str) -> errors.Conflict:
    return conflict(
        resource,
        name,
        "the object has been modified; please apply your changes to the latest version and try again",
    )


def forbidden(resource: Resource, name: str, text: str, causes: Sequence[dict[str, Any]] = ()) -> errors.Forbidden:
    details = _details(resource, name)
    if causes:
        details["causes"] = list(causes)
    return errors.Forbidden(f'{resource} "{name}" is forbidden: {text}', details=details)


def method_not_allowed() -> errors.MethodNotAllowed:
    return errors.MethodNotAllowed("the server does not allow this method on the requested resource")


def too_old_watch(revision: int, oldest: int) -> errors.Gone:
    return errors.Gone(f"too old resource version: {revision} ({oldest})", reason="Expired")


def too_old_page() -> errors.Gone:
    return errors.Gone(
        "The provided continue parameter is too old to display a consistent list result. "
        "You must start a new list without the continue parameter.",
        reason="Expired",
    )


def too_new(revision: int, current: int) -> errors.ServerError:
    return errors.ServerError(
        f"Timeout: Too large resource version: {revision}, current: {current}",
        code=504,
        reason="Timeout",
        details={
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        },
        retry_after_seconds=1,
    )
