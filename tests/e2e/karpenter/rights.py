"""What the kwok form may do over what its chart says: it makes Node objects, and keeps instances in ConfigMaps."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

_MODULE = "github.com/aws/karpenter-provider-aws"
_MANIFEST = "kwok/manifests/clusterrole.yaml"


def kwok_rights(
    module_path: Callable[[str], Path], *, namespace: str = "kube-system", service_account: str = "karpenter"
) -> list[dict[str, Any]]:
    """Upstream's own ClusterRole and its binding, to the service account that the program gives to Karpenter."""
    text = (module_path(_MODULE) / _MANIFEST).read_text()
    role, binding = yaml.safe_load_all(text)
    binding["subjects"] = [{"kind": "ServiceAccount", "name": service_account, "namespace": namespace}]
    return [role, binding]
