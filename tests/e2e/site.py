"""Where one run of the proof lives: its folders, ports and logs, as every process of it reads them."""

import json
import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Self

VARIABLE = "TOPOLAB_E2E_SITE"
"""Names the file of the site for the stand-ins that the engine starts; the program never reads it."""

ACCOUNT = "123456789012"
REGION = "us-east-1"


@dataclass(frozen=True, kw_only=True)
class Site:
    """One fake account and one real control plane. All paths are absolute and lie under `folder`, tools apart."""

    folder: Path
    """Temporary; everything that the run leaves on disk lies here, logs under `folder / "logs"`."""
    tools: Path
    """Binaries of `tests.e2e.tools`: kubebox, trainer-controller-manager, jobset, kwok, karpenter, helm, pulumi."""
    kubeconfig: Path
    """Admin's; holds the certificates, so it works anywhere. The cluster that the fake EKS hands out."""
    aws_endpoint: str
    """The fake cloud, as AWS_ENDPOINT_URL wants it: http://127.0.0.1:PORT."""
    charts: Path
    """A folder for `topolab:charts`: each chart of the catalogue by its name."""

    @property
    def operations(self) -> Path:
        """The operation log (`tests.e2e.operations`)."""
        return self.folder / "operations.jsonl"

    @property
    def faults(self) -> Path:
        """Faults to come (`tests.e2e.faults`)."""
        return self.folder / "faults.json"

    @property
    def logs(self) -> Path:
        """One file a process."""
        return self.folder / "logs"

    def save(self) -> Path:
        """Write the file that VARIABLE names."""
        path = self.folder / "site.json"
        path.write_text(json.dumps({field.name: str(getattr(self, field.name)) for field in fields(self)}))
        return path

    def environment(self) -> dict[str, str]:
        """What a child needs to find this site and to talk to its cloud as a user's shell would."""
        return {
            VARIABLE: str(self.folder / "site.json"),
            "AWS_ENDPOINT_URL": self.aws_endpoint,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_DEFAULT_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }

    @classmethod
    def load(cls, path: Path) -> Self:
        """The site of a file that `save` wrote."""
        values = json.loads(path.read_text())
        paths = {name: Path(values[name]) for name in ("folder", "tools", "kubeconfig", "charts")}
        return cls(**paths, aws_endpoint=values["aws_endpoint"])

    @classmethod
    def of_environment(cls) -> Self:
        """The site of this process; RuntimeError where there is none."""
        if VARIABLE not in os.environ:
            raise RuntimeError(f"{VARIABLE} isn't set: this stand-in runs under tests.e2e alone")
        return cls.load(Path(os.environ[VARIABLE]))


def ambient(variable: str) -> str | None:
    """What a user's shell says to a stand-in by one of the variables that the real provider reads; empty is None."""
    return os.environ.get(variable) or None
