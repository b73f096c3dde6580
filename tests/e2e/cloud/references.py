"""What AWS publishes to everybody: prices, image ids, quotas, services of a region."""

import json
import re

from tests.e2e.cloud.account import AMIS, Account
from tests.e2e.cloud.wire import Answer, Call, Refusal
from tests.e2e.site import REGION
from workloads.catalogue.instances import INSTANCE_TYPES
from workloads.catalogue.prices import ON_DEMAND
from workloads.catalogue.versions import KUBERNETES

_AMI_PARAMETER = re.compile(
    r"/aws/service/eks/optimized-ami/(?P<kubernetes>[\d.]+)/amazon-linux-2023/(?P<architecture>\w+)/(?P<variant>\w+)/"
    r"(recommended|amazon-eks-node-[\w.-]+)/image_id"
)
QUOTAS = {**{one.quota_code: 1152.0 for one in INSTANCE_TYPES}, "L-1216C47A": 640.0}
"""On-demand vCPUs that the account may run, by quota of EC2; L-1216C47A are the standard families."""


def get_products(_: Account, call: Call) -> Answer:
    """The catalogue's prices; one item for dedicated hosts, without which Karpenter won't start."""
    wanted = {one["Field"]: one["Value"] for one in call.params.get("Filters") or []}
    shared = wanted.get("tenancy", "Shared") == "Shared"
    prices = ON_DEMAND.usd_per_hour if shared else {"m5.metal": 4.608}
    asked = wanted.get("instanceType")
    listed = {name: usd for name, usd in prices.items() if asked in (None, name)}
    return {"FormatVersion": "aws_v1", "PriceList": [_product(name, usd) for name, usd in listed.items()]}


def _product(name: str, usd: float) -> str:
    dimension = {"pricePerUnit": {"USD": f"{usd:.10f}"}, "unit": "Hrs"}
    attributes = {"instanceType": name, "regionCode": REGION, "operatingSystem": "Linux"}
    terms = {"OnDemand": {"term": {"priceDimensions": {"rate": dimension}}}}
    return json.dumps({"product": {"attributes": attributes}, "terms": terms})


def get_parameter(_: Account, call: Call) -> Answer | None:
    """Ids of the EKS images; every other parameter is moto's."""
    name = call.params["Name"]
    if not name.startswith("/aws/service/eks/optimized-ami/"):
        return None
    found = _AMI_PARAMETER.fullmatch(name)
    image = found and AMIS.get((found["architecture"], found["variant"]))
    if not found or not image or found["kubernetes"] != KUBERNETES:
        raise Refusal("ParameterNotFound", f"Parameter {name} not found.")
    return {"Parameter": {"Name": name, "Type": "String", "Value": image, "Version": 1, "DataType": "text"}}


def get_service_quota(_: Account, call: Call) -> Answer:
    """Of EC2's on-demand instances."""
    code = call.params["QuotaCode"]
    if call.params["ServiceCode"] != "ec2" or code not in QUOTAS:
        raise Refusal("NoSuchResourceException", f"The request failed because the quota {code} doesn't exist")
    return {"Quota": _quota(code)}


DEFAULTS = {("vpc", "L-F678F1CE"): 5.0, ("ec2", "L-0263D0A3"): 5.0}
"""Of VPCs and Elastic IPs, which the account has no quota of its own for."""


def get_default_service_quota(_: Account, call: Call) -> Answer:
    """AWS's own figures, for who has none of its own."""
    service, code = call.params["ServiceCode"], call.params["QuotaCode"]
    if (service, code) not in DEFAULTS:
        raise Refusal("NoSuchResourceException", f"The request failed because the quota {code} doesn't exist")
    return {"Quota": {"ServiceCode": service, "QuotaCode": code, "Value": DEFAULTS[service, code]}}


def list_service_quotas(_: Account, call: Call) -> Answer:
    """Of EC2's on-demand instances."""
    return {"Quotas": [_quota(code) for code in QUOTAS] if call.params["ServiceCode"] == "ec2" else []}


def _quota(code: str) -> dict[str, object]:
    return {
        "ServiceCode": "ec2",
        "QuotaCode": code,
        "QuotaName": f"On-Demand vCPUs {code}",
        "Value": QUOTAS[code],
        "Unit": "None",
        "Adjustable": True,
        "GlobalQuota": False,
    }
