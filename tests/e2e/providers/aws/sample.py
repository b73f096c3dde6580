"""A small program of the AWS provider alone, for what would take the whole platform minutes to show."""

from pathlib import Path

from tests.e2e.engine.project import link_environment

_PROJECT = """\
name: sample
runtime:
  name: python
  options:
    virtualenv: .venv
"""
_MAIN = '''\
"""A VPC with a gateway, a subnet and a role, as the stack's configuration says."""

import json

import pulumi
import pulumi_aws as aws

config = pulumi.Config()
secret = config.get_secret("token") or "none"
provider = aws.Provider(
    "aws",
    region="us-east-1",
    allowed_account_ids=[config.get("account") or aws.get_caller_identity().account_id],
    default_tags=aws.ProviderDefaultTagsArgs(tags={"stack": pulumi.get_stack(), "owner": config.get("owner") or "me"}),
)
opts = pulumi.ResourceOptions(provider=provider)
network = config.get("network") or "10.0"
vpc = aws.ec2.Vpc("vpc", cidr_block=f"{network}.0.0/16", tags={"Name": config.get("name") or "first"}, opts=opts)
gateway = aws.ec2.InternetGateway("internet", vpc_id=vpc.id, opts=opts)
subnet = aws.ec2.Subnet(
    "subnet",
    vpc_id=vpc.id,
    cidr_block=f"{network}.{config.get('subnet') or 0}.0/24",
    tags={"Name": "subnet", "token": secret},
    opts=opts,
)
statement = {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
role = aws.iam.Role(
    "role", assume_role_policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]}), opts=opts
)
aws.iam.RolePolicyAttachment(
    "attached", role=role.name, policy_arn="arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore", opts=opts
)
aws.iam.InstanceProfile("profile", role=role.name, opts=opts)
queue = aws.sqs.Queue("queue", opts=opts)
table = aws.ec2.RouteTable("table", vpc_id=vpc.id, opts=opts)
aws.ec2.Route(
    "out", route_table_id=table.id, destination_cidr_block="0.0.0.0/0", gateway_id=gateway.id, opts=opts
)
pulumi.export("vpc", vpc.id)
pulumi.export("role", role.arn)
'''


def write_sample(folder: Path) -> Path:
    """The project in a folder of its own."""
    folder.mkdir(parents=True)
    (folder / "Pulumi.yaml").write_text(_PROJECT)
    (folder / "__main__.py").write_text(_MAIN)
    link_environment(folder)
    return folder
