"""What a verdict is made of: wrong evidence, and missing evidence."""

from dataclasses import dataclass, field

from trainer.record import Verdict


@dataclass
class Findings:
    """Sentences found so far; wrong evidence outweighs missing evidence."""

    wrong: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def add(self, other: "Findings") -> None:
        """Take over another part's findings."""
        self.wrong += other.wrong
        self.missing += other.missing

    def demoted(self) -> "Findings":
        """On a machine that couldn't make the link, what its links show proves nothing either way."""
        return Findings(missing=self.wrong + self.missing)

    def verdict(self) -> Verdict:
        """INVALID with anything wrong, else UNPROVEN with anything missing, else VALID."""
        if self.wrong:
            return Verdict(outcome="INVALID", reasons=tuple(self.wrong + self.missing))
        if self.missing:
            return Verdict(outcome="UNPROVEN", reasons=tuple(self.missing))
        return Verdict(outcome="VALID", reasons=())
