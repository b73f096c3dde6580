"""The bucket of run records: the user's data, kept at destroy."""

import json
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra.component import Component
from infra.iam import policy
from workloads.planning.naming import KEPT


@dataclass(frozen=True, kw_only=True)
class RecordsArgs:
    """`bucket_prefix`: at most 37 characters; AWS's provider adds the rest of the name."""

    bucket_prefix: str


class Records(Component):
    """A private, encrypted, versioned bucket. What guards it is kept with it."""

    TYPE = "topolab:infra:Records"
    bucket_name: pulumi.Output[str]
    uri: pulumi.Output[str]

    def __init__(self, name: str, args: RecordsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        kept = self.child(retain=True)
        bucket = aws.s3.Bucket("records", bucket_prefix=args.bucket_prefix, tags=KEPT, opts=kept)
        closed = aws.s3.BucketPublicAccessBlock(
            "records",
            bucket=bucket.id,
            block_public_acls=True,
            block_public_policy=True,
            ignore_public_acls=True,
            restrict_public_buckets=True,
            opts=kept,
        )
        aws.s3.BucketPolicy(
            "records",
            bucket=bucket.id,
            policy=bucket.arn.apply(_tls_only),
            # S3 refuses a policy while it closes the bucket.
            opts=self.child(retain=True, depends_on=[closed]),
        )
        _encryption(bucket, kept)
        aws.s3.BucketVersioning(
            "records",
            bucket=bucket.id,
            versioning_configuration=aws.s3.BucketVersioningVersioningConfigurationArgs(status="Enabled"),
            opts=kept,
        )
        _lifecycle(bucket, kept)
        self.bucket_name = bucket.id
        self.uri = pulumi.Output.format("s3://{0}", bucket.id)
        self.register_outputs({"bucket_name": self.bucket_name, "uri": self.uri})


def _encryption(bucket: aws.s3.Bucket, opts: pulumi.ResourceOptions) -> None:
    by_default = aws.s3.BucketServerSideEncryptionConfigurationRuleApplyServerSideEncryptionByDefaultArgs(
        sse_algorithm="AES256"
    )
    aws.s3.BucketServerSideEncryptionConfiguration(
        "records",
        bucket=bucket.id,
        rules=[
            aws.s3.BucketServerSideEncryptionConfigurationRuleArgs(apply_server_side_encryption_by_default=by_default)
        ],
        opts=opts,
    )


def _lifecycle(bucket: aws.s3.Bucket, opts: pulumi.ResourceOptions) -> None:
    """Records stay for ever; what was overwritten or never finished goes."""
    aws.s3.BucketLifecycleConfiguration(
        "records",
        bucket=bucket.id,
        rules=[
            aws.s3.BucketLifecycleConfigurationRuleArgs(
                id="leftovers",
                status="Enabled",
                filter=aws.s3.BucketLifecycleConfigurationRuleFilterArgs(prefix=""),
                noncurrent_version_expiration=aws.s3.BucketLifecycleConfigurationRuleNoncurrentVersionExpirationArgs(
                    noncurrent_days=90
                ),
                abort_incomplete_multipart_upload=aws.s3.BucketLifecycleConfigurationRuleAbortIncompleteMultipartUploadArgs(
                    days_after_initiation=7
                ),
            )
        ],
        opts=opts,
    )


def _tls_only(bucket_arn: str) -> str:
    return json.dumps(
        policy(
            {
                "Sid": "DenyHTTP",
                "Effect": "Deny",
                "Principal": "*",
                "Action": "s3:*",
                "Resource": [bucket_arn, f"{bucket_arn}/*"],
                "Condition": {"Bool": {"aws:SecureTransport": "false"}},
            }
        )
    )
