"""What the judge says."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Complaint:
    """One thing that is wrong with a plan. `rule` groups complaints of a kind, `where` is a pod, claim or pool."""

    rule: str
    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.where}: {self.message}"
