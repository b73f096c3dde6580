"""FSx for Lustre: moto's file systems have no network, no mount name, no state and no rule."""

from ipaddress import IPv4Network
from typing import Any

from tests.e2e.cloud.account import Account, Facts, now, tags_as_list
from tests.e2e.cloud.identity_rules import link_role
from tests.e2e.cloud.wire import Answer, Call, Refusal
from tests.e2e.site import ACCOUNT, REGION

LNET_PORT = 988
VERSIONS = {
    "SCRATCH_1": ("2.10",),
    "SCRATCH_2": ("2.10", "2.12", "2.15"),
    "PERSISTENT_1": ("2.10", "2.12", "2.15"),
    "PERSISTENT_2": ("2.12", "2.15"),
}
"""Lustre versions by deployment type (FSx API reference, FileSystemTypeVersion); the first is the default."""
THROUGHPUTS = {"PERSISTENT_1": (12, 40, 50, 100, 200), "PERSISTENT_2": (125, 250, 500, 1000)}
"""MB/s per TiB by deployment type."""


def create_file_system(account: Account, call: Call) -> Answer:
    """CREATING; the first look finds it AVAILABLE. One interface in its subnet."""
    params = call.params
    if params["FileSystemType"] != "LUSTRE":
        raise NotImplementedError(f"FSx {params['FileSystemType']}: only LUSTRE")
    lustre = params.get("LustreConfiguration") or {}
    kind = lustre.get("DeploymentType", "SCRATCH_1")
    version = _checked_version(params, kind)
    _check_size(params, lustre, kind)
    subnet, groups = _checked_network(account, params)
    link_role(account, "fsx.amazonaws.com", "AWSServiceRoleForAmazonFSx")
    system = account.new_id("fs-")
    interface = account.hold_interface(subnet, groups, f"Created by Amazon FSx for file system {system}", system)
    account.own.file_systems[system] = {
        "OwnerId": ACCOUNT,
        "CreationTime": now(),
        "FileSystemId": system,
        "FileSystemType": "LUSTRE",
        "FileSystemTypeVersion": version,
        "Lifecycle": "CREATING",
        "StorageCapacity": params["StorageCapacity"],
        "StorageType": params.get("StorageType", "SSD"),
        "VpcId": subnet.vpc_id,
        "SubnetIds": [subnet.id],
        "NetworkInterfaceIds": [interface],
        "DNSName": f"{system}.fsx.{REGION}.amazonaws.com",
        "ResourceARN": account.arn("fsx", f"file-system/{system}"),
        "Tags": params.get("Tags") or [],
        "LustreConfiguration": {
            "DeploymentType": kind,
            "MountName": _mount_name(system) if kind != "SCRATCH_1" else "fsx",
            "WeeklyMaintenanceStartTime": lustre.get("WeeklyMaintenanceStartTime", "1:05:00"),
            "DataCompressionType": lustre.get("DataCompressionType", "NONE"),
            **{
                key: lustre[key]
                for key in ("PerUnitStorageThroughput", "AutomaticBackupRetentionDays", "CopyTagsToBackups")
                if key in lustre
            },
        },
    }
    return {"FileSystem": account.own.file_systems[system]}


def _mount_name(system: str) -> str:
    """Eight letters that the API gives out and nobody can guess."""
    return "".join("abcdefghijklmnop"[int(digit, 16)] for digit in system[-8:])


def _checked_version(params: Facts, kind: str) -> str:
    if kind not in VERSIONS:
        raise _bad(f"DeploymentType {kind} is none of {', '.join(VERSIONS)}")
    version = params.get("FileSystemTypeVersion", VERSIONS[kind][0])
    if version not in VERSIONS[kind]:
        raise _bad(f"FileSystemTypeVersion {version} isn't supported by {kind}: {', '.join(VERSIONS[kind])}")
    return str(version)


def _check_size(params: Facts, lustre: Facts, kind: str) -> None:
    size = params.get("StorageCapacity", 0)
    if size != 1200 and (size <= 0 or size % 2400):
        raise _bad(f"StorageCapacity {size}: {kind} on SSD takes 1200 GiB or a multiple of 2400")
    throughput = lustre.get("PerUnitStorageThroughput")
    if kind not in THROUGHPUTS:
        if throughput is not None:
            raise _bad(f"PerUnitStorageThroughput can't be set for {kind}")
        if lustre.get("AutomaticBackupRetentionDays"):
            raise _bad(f"Backups aren't supported by {kind}")
    elif throughput not in THROUGHPUTS[kind]:
        raise _bad(f"PerUnitStorageThroughput {throughput} of {kind} is none of {THROUGHPUTS[kind]}")


def _checked_network(account: Account, params: Facts) -> tuple[Any, list[str]]:
    ids = params["SubnetIds"]
    if len(ids) != 1:
        raise _network(f"A Lustre file system takes exactly one subnet, not {len(ids)}")
    subnet = next((one for one in account.ec2.describe_subnets() if one.id == ids[0]), None)
    if subnet is None:
        raise _network(f"The subnet {ids[0]} does not exist")
    default = account.ec2.get_default_security_group(subnet.vpc_id)
    wanted = params.get("SecurityGroupIds") or [default.id]
    groups = [_group(account, one, subnet.vpc_id) for one in wanted]
    if not any(_lets_lustre_in(rule, wanted, subnet) for group in groups for rule in group.ingress_rules):
        raise _network(
            f"The provided security groups do not permit Lustre LNET network traffic on port {LNET_PORT}: "
            f"{', '.join(wanted)}"
        )
    return subnet, wanted


def _group(account: Account, group_id: str, vpc_id: str) -> Any:
    group = account.security_group(group_id)
    if group is None or group.vpc_id != vpc_id:
        raise _network(f"The security group {group_id} does not exist in the VPC {vpc_id} of the subnet")
    return group


def _lets_lustre_in(rule: Any, groups: list[str], subnet: Any) -> bool:
    if rule.ip_protocol not in {"-1", "tcp"}:
        return False
    if rule.ip_protocol == "tcp" and not int(rule.from_port) <= LNET_PORT <= int(rule.to_port):
        return False
    if (rule.source_group or {}).get("GroupId") in groups:
        return True
    cidr = (rule.ip_range or {}).get("CidrIp")
    return cidr is not None and IPv4Network(subnet.cidr_block).subnet_of(IPv4Network(cidr))


def describe_file_systems(account: Account, call: Call) -> Answer:
    """Who looks lets them go on: CREATING is AVAILABLE now, DELETING is gone with its interface."""
    systems = account.own.file_systems
    for system in list(systems.values()):
        if system["Lifecycle"] == "DELETING":
            for interface in system["NetworkInterfaceIds"]:
                account.release_interface(interface)
            del systems[system["FileSystemId"]]
        elif system["Lifecycle"] == "CREATING":
            system["Lifecycle"] = "AVAILABLE"
    wanted = call.params.get("FileSystemIds") or list(systems)
    return {"FileSystems": [_system(account, one) for one in wanted]}


def _system(account: Account, system: str) -> Facts:
    if system not in account.own.file_systems:
        raise Refusal("FileSystemNotFound", f"File system '{system}' does not exist.")
    return account.own.file_systems[system]


def delete_file_system(account: Account, call: Call) -> Answer:
    """DELETING: its interface holds the subnet until somebody looks how far it is."""
    system = _system(account, call.params["FileSystemId"])
    system["Lifecycle"] = "DELETING"
    return {"FileSystemId": system["FileSystemId"], "Lifecycle": "DELETING"}


def update_file_system(account: Account, call: Call) -> Answer:
    """Capacity up, and what of Lustre's configuration can change."""
    system, lustre = _system(account, call.params["FileSystemId"]), call.params.get("LustreConfiguration") or {}
    size = call.params.get("StorageCapacity", system["StorageCapacity"])
    if size < system["StorageCapacity"]:
        raise _bad(f"StorageCapacity can't shrink from {system['StorageCapacity']} to {size}")
    configuration = {**system["LustreConfiguration"], **lustre}
    _check_size({"StorageCapacity": size}, configuration, configuration["DeploymentType"])
    system["StorageCapacity"], system["LustreConfiguration"] = size, configuration
    return {"FileSystem": system}


def tag_resource(account: Account, call: Call) -> Answer:
    """Of a file system, by ARN."""
    system = _of_arn(account, call.params["ResourceARN"])
    new = {tag["Key"]: tag["Value"] for tag in [*system["Tags"], *call.params["Tags"]]}
    system["Tags"] = tags_as_list(new)
    return {}


def untag_resource(account: Account, call: Call) -> Answer:
    """Of a file system, by ARN."""
    system = _of_arn(account, call.params["ResourceARN"])
    system["Tags"] = [tag for tag in system["Tags"] if tag["Key"] not in call.params["TagKeys"]]
    return {}


def list_tags(account: Account, call: Call) -> Answer:
    """Of a file system, by ARN."""
    return {"Tags": _of_arn(account, call.params["ResourceARN"])["Tags"]}


def describe_backups(_: Account, __: Call) -> Answer:
    """Nobody makes one."""
    return {"Backups": []}


def _of_arn(account: Account, arn: str) -> Facts:
    for system in account.own.file_systems.values():
        if system["ResourceARN"] == arn:
            return system
    raise Refusal("ResourceNotFound", f"No FSx resource has the ARN {arn}")


def _bad(message: str) -> Refusal:
    return Refusal("BadRequest", message)


def _network(message: str) -> Refusal:
    return Refusal("InvalidNetworkSettings", message)
