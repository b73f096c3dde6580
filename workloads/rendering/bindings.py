"""Late-bound values: the ids that only a made resource knows, and the shape of what they are placed in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Document = dict[str, Any]
"""A Kubernetes object as plain dicts, lists and scalars, but for late-bound values."""

LateBound = object
"""A string, or a Pulumi Output of one, which this package doesn't import.

It is put into a document as it is: never formatted, compared or measured, so both fit.
"""

HF_TOKEN_KEY = "token"
"""Key of the Secret's data that holds the Hugging Face token."""


@dataclass(frozen=True, kw_only=True)
class Bindings:
    """What a document needs of resources that are made elsewhere. None: this plan doesn't place it."""

    records_uri: LateBound
    """Where runs publish their records: s3://bucket/prefix or file:///records."""
    records_folder: str | None = None
    """Folder of the host behind file:///records (local machines); None: the records need no volume."""
    subnet_id: LateBound = None
    """The one private subnet of GPU nodes: EFA doesn't route."""
    security_group_id: LateBound = None
    """The cluster security group of EKS, which lets EFA through to itself."""
    instance_profile: LateBound = None
    """Name of the GPU nodes' instance profile."""
    placement_group: LateBound = None
    """Name of the cluster placement group; `pg` topologies only."""
    tags: Mapping[str, LateBound] = field(default_factory=dict)
    """Tags of the instances that Karpenter launches, outside the reach of a provider's default tags."""
    fsx_file_system_id: LateBound = None
    fsx_dns_name: LateBound = None
    fsx_mount_name: LateBound = None
    hf_token_secret: LateBound = "hf-token"
    """Name of the Secret; its value never enters a document."""

    @classmethod
    def placeholders(cls) -> "Bindings":
        """`${subnet}` and the like, for documents that a person reads."""
        return cls(
            records_uri="${records}",
            subnet_id="${subnet}",
            security_group_id="${security-group}",
            instance_profile="${instance-profile}",
            placement_group="${placement-group}",
            tags={"topolab:stack": "${stack}"},
            fsx_file_system_id="${fsx-file-system}",
            fsx_dns_name="${fsx-dns-name}",
            fsx_mount_name="${fsx-mount-name}",
        )

    @classmethod
    def local(cls, *, records_path: str) -> "Bindings":
        """For a local machine: records go to that folder of the host (absolute path)."""
        if not records_path.startswith("/"):
            raise ValueError(f"records folder {records_path!r} isn't an absolute path; give one")
        return cls(records_uri="file:///records", records_folder=records_path)
