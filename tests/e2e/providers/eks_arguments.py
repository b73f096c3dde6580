"""What the component eks:index:Cluster refuses: as the real one, and what the stand-in can't do."""

from collections.abc import Mapping
from typing import Any

ARGUMENTS = frozenset(
    {
        "accessEntries",
        "authenticationMode",
        "clusterTags",
        "corednsAddonOptions",
        "createOidcProvider",
        "enabledClusterLogTypes",
        "endpointPrivateAccess",
        "endpointPublicAccess",
        "instanceRoles",
        "kubeProxyAddonOptions",
        "name",
        "privateSubnetIds",
        "providerCredentialOpts",
        "publicAccessCidrs",
        "publicSubnetIds",
        "roleMappings",
        "serviceRole",
        "skipDefaultNodeGroup",
        "skipDefaultSecurityGroups",
        "subnetIds",
        "tags",
        "useDefaultVpcCni",
        "userMappings",
        "version",
        "vpcId",
    }
)
_MODES = ("CONFIG_MAP", "API_AND_CONFIG_MAP", "API")


def fault_of(arguments: Mapping[str, Any]) -> tuple[str, str] | None:
    """The first argument that the component refuses, or that this stand-in can't do, and the sentence."""
    for name in arguments:
        if name not in ARGUMENTS:
            return name, f"the stand-in of eks takes no argument {name!r}; it takes {', '.join(sorted(ARGUMENTS))}"
    return _refused(arguments) or _beyond(arguments)


def _refused(arguments: Mapping[str, Any]) -> tuple[str, str] | None:
    """As the real component refuses it."""
    mode = arguments.get("authenticationMode")
    if mode is not None and mode not in _MODES:
        return "authenticationMode", (
            f"Invalid value for authenticationMode: {mode}. Allowed values are: {', '.join(_MODES)}."
        )
    if mode == "API":
        for name in ("roleMappings", "userMappings", "instanceRoles"):
            # A value that isn't known yet counts as one.
            if arguments.get(name) not in (None, []):
                what = "property does not support non-empty values when 'authenticationMode' is set to 'API'."
                return name, f"The '{name}' {what}"
    elif mode != "API_AND_CONFIG_MAP" and arguments.get("accessEntries"):
        state = "not set" if mode is None else f"set to '{mode}'"
        return "accessEntries", f"The 'accessEntries' property is not supported when 'authenticationMode' is {state}."
    if "subnetIds" in arguments and ("publicSubnetIds" in arguments or "privateSubnetIds" in arguments):
        return "subnetIds", (
            "subnetIds, and the use of publicSubnetIds and/or privateSubnetIds are mutually exclusive. "
            "Choose a single approach."
        )
    if arguments.get("publicAccessCidrs") and arguments.get("endpointPublicAccess") is False:
        return "publicAccessCidrs", "`publicAccessCidrs` can only be set when `endpointPublicAccess` is true"
    return None


def _beyond(arguments: Mapping[str, Any]) -> tuple[str, str] | None:
    """What the real component can do and this one can't."""
    if arguments.get("authenticationMode") != "API":
        return "authenticationMode", "the stand-in of eks knows mode API alone: it writes no aws-auth ConfigMap"
    if "vpcId" not in arguments:
        return "vpcId", "the stand-in of eks has no default VPC: give one"
    for name in ("skipDefaultNodeGroup", "skipDefaultSecurityGroups"):
        if arguments.get(name) is not True:
            return name, f"the stand-in of eks makes no node group and no security group of its own: set {name}"
    if arguments.get("createOidcProvider"):
        return "createOidcProvider", "the stand-in of eks makes no OIDC provider"
    if (arguments.get("corednsAddonOptions") or {}).get("enabled") is True:
        return "corednsAddonOptions", "the stand-in of eks makes no coredns add-on"
    return None
