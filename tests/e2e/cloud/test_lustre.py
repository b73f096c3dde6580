"""FSx for Lustre of the account."""

import pytest

from tests.e2e.cloud.inventory import inventory

pytestmark = pytest.mark.e2e


@pytest.fixture
def fsx(client):
    return client("fsx")


@pytest.fixture
def group(ground) -> str:
    made = str(ground.ec2.create_security_group(VpcId=ground.vpc, GroupName="l", Description="l")["GroupId"])
    permission = {"IpProtocol": "tcp", "FromPort": 988, "ToPort": 988, "IpRanges": [{"CidrIp": "10.0.0.0/16"}]}
    ground.ec2.authorize_security_group_ingress(GroupId=made, IpPermissions=[permission])
    return made


@pytest.fixture
def scratch(ground, group):
    """Arguments of a file system, with changes; `LustreConfiguration` is merged."""

    def arguments(**changes):
        lustre = {"DeploymentType": "SCRATCH_2", **changes.pop("LustreConfiguration", {})}
        return {
            "FileSystemType": "LUSTRE",
            "StorageCapacity": 1200,
            "StorageType": "SSD",
            "SubnetIds": ground.subnets[:1],
            "SecurityGroupIds": [group],
            "FileSystemTypeVersion": "2.15",
            "Tags": [{"Key": "Name", "Value": "lustre"}],
            "LustreConfiguration": lustre,
            **changes,
        }

    return arguments


def test_a_file_system_has_an_address_and_holds_its_subnet_until_somebody_waited(fsx, ground, scratch, cloud, refused):
    made = fsx.create_file_system(**scratch())["FileSystem"]
    assert made["Lifecycle"] == "CREATING"
    system = made["FileSystemId"]
    (shown,) = fsx.describe_file_systems(FileSystemIds=[system])["FileSystems"]
    assert shown["Lifecycle"] == "AVAILABLE"
    assert shown["DNSName"] == f"{system}.fsx.us-east-1.amazonaws.com"
    assert len(shown["LustreConfiguration"]["MountName"]) == 8
    assert inventory(cloud)["ec2:network-interface"] == shown["NetworkInterfaceIds"]

    fsx.delete_file_system(FileSystemId=system)
    assert refused(ground.ec2.delete_subnet, SubnetId=ground.subnets[0]) == "DependencyViolation"
    assert refused(fsx.describe_file_systems, FileSystemIds=[system]) == "FileSystemNotFound"
    ground.ec2.delete_subnet(SubnetId=ground.subnets[0])
    assert "fsx:file-system" not in inventory(cloud)


def test_persistent_storage_has_a_throughput(fsx, scratch):
    lustre = {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 250, "AutomaticBackupRetentionDays": 0}
    made = fsx.create_file_system(**scratch(LustreConfiguration=lustre))["FileSystem"]
    assert lustre.items() <= made["LustreConfiguration"].items()


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"SubnetIds": ["subnet-0123456789abcdef0"]}, "InvalidNetworkSettings"),
        ({"SecurityGroupIds": ["sg-0123456789abcdef0"]}, "InvalidNetworkSettings"),
        ({"FileSystemTypeVersion": "2.14"}, "BadRequest"),
        ({"StorageCapacity": 1300}, "BadRequest"),
        ({"LustreConfiguration": {"PerUnitStorageThroughput": 250}}, "BadRequest"),
        ({"LustreConfiguration": {"AutomaticBackupRetentionDays": 7}}, "BadRequest"),
        ({"LustreConfiguration": {"DeploymentType": "PERSISTENT_2"}}, "BadRequest"),
        (
            {
                "FileSystemTypeVersion": "2.10",
                "LustreConfiguration": {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 250},
            },
            "BadRequest",
        ),
        ({"FileSystemType": "WINDOWS"}, "NotImplemented"),
    ],
)
def test_what_a_file_system_is_refused_for(fsx, scratch, cloud, refused, changes, code):
    assert refused(fsx.create_file_system, **scratch(**changes)) == code
    assert "fsx:file-system" not in inventory(cloud)


def test_two_subnets_are_one_too_many(fsx, ground, scratch, refused):
    assert refused(fsx.create_file_system, **scratch(SubnetIds=ground.subnets)) == "InvalidNetworkSettings"


def test_its_groups_let_lustre_in(fsx, ground, scratch, refused):
    closed = ground.ec2.create_security_group(VpcId=ground.vpc, GroupName="c", Description="c")["GroupId"]
    assert refused(fsx.create_file_system, **scratch(SecurityGroupIds=[closed])) == "InvalidNetworkSettings"


def test_it_stands_in_the_clusters_group(fsx, ground, scratch):
    group = ground.up()["resourcesVpcConfig"]["clusterSecurityGroupId"]
    fsx.create_file_system(**scratch(SecurityGroupIds=[group]))


def test_its_tags_change_and_its_size_grows(fsx, scratch, refused):
    made = fsx.create_file_system(**scratch())["FileSystem"]
    fsx.tag_resource(ResourceARN=made["ResourceARN"], Tags=[{"Key": "a", "Value": "1"}])
    fsx.untag_resource(ResourceARN=made["ResourceARN"], TagKeys=["Name"])
    assert fsx.list_tags_for_resource(ResourceARN=made["ResourceARN"])["Tags"] == [{"Key": "a", "Value": "1"}]

    fsx.update_file_system(FileSystemId=made["FileSystemId"], StorageCapacity=2400)
    smaller = {"FileSystemId": made["FileSystemId"], "StorageCapacity": 1200}
    assert refused(fsx.update_file_system, **smaller) == "BadRequest"
