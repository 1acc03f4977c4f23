"""What is told of one object: a sentence that names the cause, what was tried, and what would help."""

import dataclasses

from growth.api.kinds import Json
from growth.planning.explaining.remedies import Remedy


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One place or rule that was looked at: a pool, a node, a stage. `rule` is one word for machines."""

    what: str
    rule: str
    message: str

    def as_json(self) -> Json:
        return {"what": self.what, "rule": self.rule, "message": self.message}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """`subject` is kind and name, `cause` one word for machines, `sentence` the same for people.

    `nearest` is the nearest miss, empty where there is none; `notes` are what else one should know. Every remedy was tried
    out on the scene, but for those that only time brings.
    """

    subject: str
    cause: str
    sentence: str
    tried: tuple[Tried, ...] = ()
    nearest: str = ""
    notes: tuple[str, ...] = ()
    remedies: tuple[Remedy, ...] = ()

    def as_json(self) -> Json:
        """As documented; a contract."""
        return {
            "subject": self.subject,
            "cause": self.cause,
            "sentence": self.sentence,
            "tried": [each.as_json() for each in self.tried],
            "nearest": self.nearest,
            "notes": list(self.notes),
            "remedies": [each.as_json() for each in self.remedies],
        }
