"""What a training pod may do in AWS: read its data, write its records, nothing else."""

import json
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra.component import Component
from infra.iam import POD_IDENTITY_TRUST, Policy, Statement, allow, policy
from workloads.planning.plan import NAMESPACE
from workloads.rendering.names import SERVICE_ACCOUNT


@dataclass(frozen=True, kw_only=True)
class TrainerRightsArgs:
    """`records_uri`: s3://bucket or s3://bucket/prefix. `data_uri`: s3://... that is read, if any.

    `boundary`: ARN of the role's permissions boundary, if any.
    """

    role_name: str
    boundary: str | None
    partition: str
    cluster_name: pulumi.Input[str]
    records_uri: pulumi.Input[str]
    data_uri: str | None


class TrainerRights(Component):
    """A role for the pods' service account, by Pod Identity."""

    TYPE = "topolab:infra:TrainerRights"
    association: pulumi.Resource
    """Credentials are injected when a pod is admitted, so the association comes before the job."""

    def __init__(self, name: str, args: TrainerRightsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        role = aws.iam.Role(
            "trainer",
            name=args.role_name,
            assume_role_policy=json.dumps(POD_IDENTITY_TRUST),
            permissions_boundary=args.boundary,
            opts=self.child(),
        )
        rights = aws.iam.RolePolicy(
            "records",
            role=role.id,
            policy=pulumi.Output.from_input(args.records_uri).apply(
                lambda uri: json.dumps(trainer_policy(args.partition, uri, args.data_uri))
            ),
            opts=self.child(),
        )
        self.association = aws.eks.PodIdentityAssociation(
            "trainer",
            cluster_name=args.cluster_name,
            namespace=NAMESPACE,
            service_account=SERVICE_ACCOUNT,
            role_arn=role.arn,
            # A pod that gets its credentials can use them at once.
            opts=self.child(depends_on=[rights]),
        )
        self.register_outputs({})


def trainer_policy(partition: str, records_uri: str, data_uri: str | None) -> Policy:
    """Put, get and list under the records' prefix; get and list under the data's. Nothing can be deleted."""
    statements = _under(partition, "Records", records_uri, ["s3:GetObject", "s3:PutObject"])
    if data_uri is not None:
        statements += _under(partition, "Data", data_uri, ["s3:GetObject"])
    return policy(*statements)


def _under(partition: str, sid: str, uri: str, actions: list[str]) -> list[Statement]:
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    arn = f"arn:{partition}:s3:::{bucket}"
    path = prefix.strip("/")
    objects = f"{arn}/{path}/*" if path else f"{arn}/*"
    # HeadObject of an absent key answers 404 only to who may list, and that question carries no prefix: under
    # a plain StringLike it is 403, which looks like a bucket out of reach. So a listing without a prefix is
    # allowed too, which shows names; what lies elsewhere in the bucket stays unreadable.
    listed = {"StringLikeIfExists": {"s3:prefix": ["", path, f"{path}/*"]}} if path else None
    # Data may be one object rather than a folder of them.
    exact = [f"{arn}/{path}"] if path and sid == "Data" else []
    return [
        allow(f"{sid}Objects", actions, [objects, *exact]),
        allow(f"{sid}List", ["s3:ListBucket"], [arn], listed),
    ]
