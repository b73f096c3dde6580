"""S3 buckets with what guards them, and FSx for Lustre: rows of the table."""

import itertools
import time
from collections.abc import Callable
from typing import Any, ClassVar

from botocore.exceptions import ClientError

from tests.e2e.providers.aws.cloud import Cloud, PendingError, code_of, gone_is_fine
from tests.e2e.providers.aws.kinds import JSON, TEXTS, Inputs, Kind, changed_tags, tag_list, tag_map
from tests.e2e.providers.values import Properties

_NO_BUCKET = ("NoSuchBucket", "404")
_counter = itertools.count(1)


class Bucket(Kind):
    TYPE = "aws:s3/bucket:Bucket"
    INPUTS: ClassVar[Inputs] = {"bucket": str, "bucketPrefix": str, "tags": TEXTS}
    REPLACE = ("bucket", "bucketPrefix")
    NAME = "bucket"
    PREFIX = "bucketPrefix"
    COMPUTED = ("arn", "bucket", "bucketDomainName", "region", "tagsAll")

    def make(self, cloud: Cloud, inputs: Properties) -> str:
        name = inputs.get("bucket") or f"{inputs['bucketPrefix']}{_unique()}"
        where = {} if cloud.region == "us-east-1" else {"LocationConstraint": cloud.region}
        cloud.s3.create_bucket(Bucket=name, **({"CreateBucketConfiguration": where} if where else {}))
        return str(name)

    def finish(self, cloud: Cloud, identifier: str, inputs: Properties, within_s: float) -> None:
        del within_s
        _set_tags(cloud, identifier, inputs)

    def live(self, cloud: Cloud, identifier: str) -> Properties | None:
        if _part(lambda: cloud.s3.head_bucket(Bucket=identifier), *_NO_BUCKET) is None:
            return None
        tags = _part(lambda: cloud.s3.get_bucket_tagging(Bucket=identifier), "NoSuchTagSet")
        return {
            "arn": f"arn:aws:s3:::{identifier}",
            "bucket": identifier,
            "bucketDomainName": f"{identifier}.s3.amazonaws.com",
            "region": cloud.region,
            "tags": tag_map(tags["TagSet"] if tags else []),
        }

    def change(self, cloud: Cloud, identifier: str, old: Properties, new: Properties) -> None:
        """Nothing: tags are the only thing to change, and `finish` sets them."""

    def remove(self, cloud: Cloud, identifier: str, inputs: Properties, outputs: Properties, free_s: float) -> None:
        del inputs, outputs, free_s
        with gone_is_fine(*_NO_BUCKET):
            cloud.s3.delete_bucket(Bucket=identifier)


class _OfBucket(Kind):
    """A setting of a bucket; its identifier is the bucket's."""

    REPLACE = ("bucket",)
    REQUIRED: ClassVar[tuple[str, ...]] = ("bucket",)
    ABSENT: ClassVar[str]
    """AWS's code for a bucket without it."""

    def put(self, cloud: Cloud, inputs: Properties) -> None:
        """The call that sets it."""
        raise NotImplementedError

    def got(self, cloud: Cloud, bucket: str) -> Properties:
        """What is set, in the provider's names."""
        raise NotImplementedError

    def dropped(self, cloud: Cloud, bucket: str) -> None:
        """The call that takes it away."""
        raise NotImplementedError

    def make(self, cloud: Cloud, inputs: Properties) -> str:
        self.put(cloud, inputs)
        return str(inputs["bucket"])

    def live(self, cloud: Cloud, identifier: str) -> Properties | None:
        found = _part(lambda: self.got(cloud, identifier), self.ABSENT, *_NO_BUCKET)
        return {"bucket": identifier, **found} if found else None

    def change(self, cloud: Cloud, identifier: str, old: Properties, new: Properties) -> None:
        del identifier, old
        self.put(cloud, new)

    def remove(self, cloud: Cloud, identifier: str, inputs: Properties, outputs: Properties, free_s: float) -> None:
        del inputs, outputs, free_s
        with gone_is_fine(self.ABSENT, *_NO_BUCKET):
            self.dropped(cloud, identifier)


class BucketPublicAccessBlock(_OfBucket):
    TYPE = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock"
    INPUTS: ClassVar[Inputs] = {
        "blockPublicAcls": bool,
        "blockPublicPolicy": bool,
        "bucket": str,
        "ignorePublicAcls": bool,
        "restrictPublicBuckets": bool,
    }
    DEFAULTS: ClassVar[Properties] = {
        "blockPublicAcls": False,
        "blockPublicPolicy": False,
        "ignorePublicAcls": False,
        "restrictPublicBuckets": False,
    }
    ABSENT = "NoSuchPublicAccessBlockConfiguration"

    def put(self, cloud: Cloud, inputs: Properties) -> None:
        block = {_upper(name): inputs[name] for name in self.DEFAULTS}
        cloud.s3.put_public_access_block(Bucket=inputs["bucket"], PublicAccessBlockConfiguration=block)

    def got(self, cloud: Cloud, bucket: str) -> Properties:
        block = cloud.s3.get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"]
        return {name: block.get(_upper(name), False) for name in self.DEFAULTS}

    def dropped(self, cloud: Cloud, bucket: str) -> None:
        cloud.s3.delete_public_access_block(Bucket=bucket)


class BucketPolicy(_OfBucket):
    TYPE = "aws:s3/bucketPolicy:BucketPolicy"
    INPUTS: ClassVar[Inputs] = {"bucket": str, "policy": JSON}
    REQUIRED = ("bucket", "policy")
    ABSENT = "NoSuchBucketPolicy"

    def put(self, cloud: Cloud, inputs: Properties) -> None:
        cloud.s3.put_bucket_policy(Bucket=inputs["bucket"], Policy=inputs["policy"])

    def got(self, cloud: Cloud, bucket: str) -> Properties:
        return {"policy": cloud.s3.get_bucket_policy(Bucket=bucket)["Policy"]}

    def dropped(self, cloud: Cloud, bucket: str) -> None:
        cloud.s3.delete_bucket_policy(Bucket=bucket)


class BucketServerSideEncryptionConfiguration(_OfBucket):
    TYPE = "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration"
    INPUTS: ClassVar[Inputs] = {
        "bucket": str,
        "rules": [{"applyServerSideEncryptionByDefault": {"sseAlgorithm": str}, "bucketKeyEnabled": bool}],
    }
    REQUIRED = ("bucket", "rules")
    ABSENT = "ServerSideEncryptionConfigurationNotFoundError"

    def put(self, cloud: Cloud, inputs: Properties) -> None:
        rules = {"Rules": [_renamed(rule, _upper_sse) for rule in inputs["rules"]]}
        cloud.s3.put_bucket_encryption(Bucket=inputs["bucket"], ServerSideEncryptionConfiguration=rules)

    def got(self, cloud: Cloud, bucket: str) -> Properties:
        found = cloud.s3.get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"]["Rules"]
        return {"rules": [_renamed(rule, _lower_sse) for rule in found]}

    def dropped(self, cloud: Cloud, bucket: str) -> None:
        cloud.s3.delete_bucket_encryption(Bucket=bucket)


class BucketVersioning(_OfBucket):
    TYPE = "aws:s3/bucketVersioning:BucketVersioning"
    INPUTS: ClassVar[Inputs] = {"bucket": str, "versioningConfiguration": {"status": str}}
    REQUIRED = ("bucket", "versioningConfiguration")
    ABSENT = "NoVersioning"

    def put(self, cloud: Cloud, inputs: Properties) -> None:
        status = {"Status": inputs["versioningConfiguration"]["status"]}
        cloud.s3.put_bucket_versioning(Bucket=inputs["bucket"], VersioningConfiguration=status)

    def got(self, cloud: Cloud, bucket: str) -> Properties:
        status = cloud.s3.get_bucket_versioning(Bucket=bucket).get("Status")
        return {"versioningConfiguration": {"status": status}} if status else {}

    def dropped(self, cloud: Cloud, bucket: str) -> None:
        # A bucket that was versioned once can't be unversioned.
        cloud.s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Suspended"})


class BucketLifecycleConfiguration(_OfBucket):
    TYPE = "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration"
    INPUTS: ClassVar[Inputs] = {
        "bucket": str,
        "rules": [
            {
                "abortIncompleteMultipartUpload": {"daysAfterInitiation": int},
                "filter": {"prefix": str},
                "id": str,
                "noncurrentVersionExpiration": {"noncurrentDays": int},
                "status": str,
            }
        ],
    }
    REQUIRED = ("bucket", "rules")
    ABSENT = "NoSuchLifecycleConfiguration"

    def put(self, cloud: Cloud, inputs: Properties) -> None:
        rules = {"Rules": [_renamed(rule, _upper_rule) for rule in inputs["rules"]]}
        cloud.s3.put_bucket_lifecycle_configuration(Bucket=inputs["bucket"], LifecycleConfiguration=rules)

    def got(self, cloud: Cloud, bucket: str) -> Properties:
        found = cloud.s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
        return {"rules": [_renamed(rule, _lower_rule) for rule in found]}

    def dropped(self, cloud: Cloud, bucket: str) -> None:
        cloud.s3.delete_bucket_lifecycle(Bucket=bucket)


class LustreFileSystem(Kind):
    TYPE = "aws:fsx/lustreFileSystem:LustreFileSystem"
    INPUTS: ClassVar[Inputs] = {
        "automaticBackupRetentionDays": int,
        "deploymentType": str,
        "fileSystemTypeVersion": str,
        "perUnitStorageThroughput": int,
        "securityGroupIds": [str],
        "skipFinalBackup": bool,
        "storageCapacity": int,
        "storageType": str,
        "subnetIds": str,
        "tags": TEXTS,
    }
    REQUIRED = ("subnetIds",)
    REPLACE = ("deploymentType", "fileSystemTypeVersion", "securityGroupIds", "storageType", "subnetIds")
    DEFAULTS: ClassVar[Properties] = {"skipFinalBackup": True}
    COMPUTED = ("arn", "dnsName", "mountName", "networkInterfaceIds", "ownerId", "tagsAll", "vpcId")

    def make(self, cloud: Cloud, inputs: Properties) -> str:
        made = cloud.fsx.create_file_system(
            FileSystemType="LUSTRE",
            FileSystemTypeVersion=inputs["fileSystemTypeVersion"],
            StorageCapacity=inputs["storageCapacity"],
            StorageType=inputs["storageType"],
            SubnetIds=[inputs["subnetIds"]],
            SecurityGroupIds=inputs.get("securityGroupIds", []),
            LustreConfiguration=_lustre(inputs),
            Tags=tag_list(inputs.get("tags")),
        )
        return str(made["FileSystem"]["FileSystemId"])

    def finish(self, cloud: Cloud, identifier: str, inputs: Properties, within_s: float) -> None:
        del inputs

        def available() -> bool:
            found = _file_system(cloud, identifier) or {}
            if found.get("Lifecycle") == "FAILED":
                raise PendingError(f"{identifier} failed; run `pulumi up --replace URN` to make another")
            return found.get("Lifecycle") == "AVAILABLE"

        cloud.until(available, within_s, f"{identifier} to be available")

    def live(self, cloud: Cloud, identifier: str) -> Properties | None:
        found = _file_system(cloud, identifier)
        if found is None or found["Lifecycle"] == "DELETING":
            return None
        lustre = found["LustreConfiguration"]
        return {
            "arn": found["ResourceARN"],
            "automaticBackupRetentionDays": lustre.get("AutomaticBackupRetentionDays"),
            "deploymentType": lustre.get("DeploymentType"),
            "dnsName": found["DNSName"],
            "fileSystemTypeVersion": found.get("FileSystemTypeVersion"),
            "mountName": lustre.get("MountName"),
            "networkInterfaceIds": found.get("NetworkInterfaceIds", []),
            "ownerId": found.get("OwnerId"),
            "perUnitStorageThroughput": lustre.get("PerUnitStorageThroughput"),
            "storageCapacity": found["StorageCapacity"],
            "storageType": found.get("StorageType"),
            "subnetIds": found["SubnetIds"][0],
            "tags": tag_map(found.get("Tags")),
            "vpcId": found.get("VpcId"),
        }

    def change(self, cloud: Cloud, identifier: str, old: Properties, new: Properties) -> None:
        if old.get("storageCapacity") != new["storageCapacity"]:
            cloud.fsx.update_file_system(FileSystemId=identifier, StorageCapacity=new["storageCapacity"])
        before, after = _lustre(old), _lustre(new)
        changed = {name: value for name, value in after.items() if before.get(name) != value}
        if changed:
            cloud.fsx.update_file_system(FileSystemId=identifier, LustreConfiguration=changed)
        to_set, to_drop = changed_tags(old, new)
        arn = cloud.arn("fsx", f"file-system/{identifier}")
        if to_drop:
            cloud.fsx.untag_resource(ResourceARN=arn, TagKeys=to_drop)
        if to_set:
            cloud.fsx.tag_resource(ResourceARN=arn, Tags=tag_list(to_set))

    def remove(self, cloud: Cloud, identifier: str, inputs: Properties, outputs: Properties, free_s: float) -> None:
        del outputs, free_s
        with gone_is_fine("FileSystemNotFound"):
            skip = {"SkipFinalBackup": inputs.get("skipFinalBackup", True)}
            cloud.fsx.delete_file_system(FileSystemId=identifier, LustreConfiguration=skip)
        cloud.until(lambda: _file_system(cloud, identifier) is None, cloud.waits.gone_s, f"{identifier} to go")


def _unique() -> str:
    """18 digits of time and 8 of a counter, as the real provider completes a prefix."""
    now = time.time_ns()
    return time.strftime("%Y%m%d%H%M%S", time.gmtime(now // 10**9)) + f"{now // 10**5 % 10**4:04d}{next(_counter):08x}"


def _set_tags(cloud: Cloud, bucket: str, inputs: Properties) -> None:
    if inputs.get("tags"):
        cloud.s3.put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": tag_list(inputs["tags"])})
    else:
        cloud.s3.delete_bucket_tagging(Bucket=bucket)


def _part(get: Callable[[], Any], *absent: str) -> Any:
    try:
        return get()
    except ClientError as error:
        if code_of(error) in absent:
            return None
        raise


def _file_system(cloud: Cloud, identifier: str) -> Any:
    found = _part(lambda: cloud.fsx.describe_file_systems(FileSystemIds=[identifier]), "FileSystemNotFound")
    return found["FileSystems"][0] if found and found["FileSystems"] else None


def _lustre(inputs: Properties) -> dict[str, Any]:
    names = {
        "AutomaticBackupRetentionDays": "automaticBackupRetentionDays",
        "DeploymentType": "deploymentType",
        "PerUnitStorageThroughput": "perUnitStorageThroughput",
    }
    return {api: inputs[name] for api, name in names.items() if name in inputs}


def _renamed(value: Any, name: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        return {name(key): _renamed(item, name) for key, item in value.items()}
    return value


def _upper(name: str) -> str:
    return name[0].upper() + name[1:]


def _lower(name: str) -> str:
    return name[0].lower() + name[1:]


def _upper_sse(name: str) -> str:
    return "SSEAlgorithm" if name == "sseAlgorithm" else _upper(name)


def _lower_sse(name: str) -> str:
    return "sseAlgorithm" if name == "SSEAlgorithm" else _lower(name)


def _upper_rule(name: str) -> str:
    return "ID" if name == "id" else _upper(name)


def _lower_rule(name: str) -> str:
    return "id" if name == "ID" else _lower(name)
