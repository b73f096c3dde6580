"""Volumes of the pods and where each container sees them."""

from workloads.planning.plan import Plan
from workloads.rendering.bindings import Bindings, Document
from workloads.rendering.names import code_map_name, config_map_name
from workloads.rendering.quantities import gib
from workloads.rendering.storage import FSX_CLAIM, RECORDS_CLAIM
from workloads.rendering.trainer_code import LOCK

CONFIG_FILE = "config.json"
_CONFIG = "/config"
_CODE = "/opt/topolab/code"
_SITE = "/opt/topolab/site"
_SHM = "/dev/shm"
_RECORDS = "/records"
_FSX = "/fsx"

CONFIG_PATH = f"{_CONFIG}/{CONFIG_FILE}"
SITE_FOLDER = _SITE
LOCK_PATH = f"{_CODE}/trainer/{LOCK}"
CHECKPOINTS = "checkpoints"
"""Folder of the checkpoints of all jobs, on FSx or beside a local machine's records."""


def checkpoint_folder(plan: Plan) -> str | None:
    """Where all pods of a run see the same folder; None: each has its own alone, which goes with it.

    On a local machine they lie beside the records, as long as the nodes share that folder.
    """
    if plan.platform.storage.fsx != "none":
        return f"{_FSX}/{CHECKPOINTS}"
    return f"{_RECORDS}/{CHECKPOINTS}" if plan.saves and plan.topology.machine.is_local else None


def python_path(plan: Plan) -> str | None:
    """Value of PYTHONPATH; None where the image holds the trainer."""
    if not plan.image.mounted:
        return None
    return f"{_CODE}:{_SITE}" if brings_wheels(plan) else _CODE


def brings_wheels(plan: Plan) -> bool:
    """True where the image's own packages are too few: the trainer is mounted into a foreign image."""
    return plan.image.mounted and plan.image.reference is not None


def volumes(plan: Plan, bindings: Bindings) -> list[Document]:
    """Volumes of the pod."""
    result: list[Document] = [{"name": "config", "configMap": {"name": config_map_name(plan.topology)}}]
    if _has_own_shm(plan):
        shm = {"medium": "Memory", "sizeLimit": gib(plan.resources.shm_gib)}
        result.append({"name": "shm", "emptyDir": shm})
    if plan.image.mounted:
        result.append({"name": "code", "configMap": {"name": code_map_name(plan.topology)}})
    if brings_wheels(plan):
        result.append({"name": "site", "emptyDir": {}})
    return [*result, *(_claim_volume(claim) for claim, _ in _claims(plan, bindings))]


def trainer_mounts(plan: Plan, bindings: Bindings) -> list[Document]:
    """Mounts of the container `node`."""
    claims = [_mount(claim, path) for claim, path in _claims(plan, bindings)]
    return [_mount("config", _CONFIG), *check_mounts(plan), *claims]


def check_mounts(plan: Plan) -> list[Document]:
    """Mounts of the init container that looks at what the trainer will find."""
    shm = [_mount("shm", _SHM)] if _has_own_shm(plan) else []
    return [*shm, *wheel_mounts(plan)]


def wheel_mounts(plan: Plan) -> list[Document]:
    """Mounts of the trainer's code and, where they are brought, of its packages."""
    code = [_mount("code", f"{_CODE}/trainer")] if plan.image.mounted else []
    return [*code, _mount("site", _SITE)] if brings_wheels(plan) else code


def _has_own_shm(plan: Plan) -> bool:
    """Under hostIPC the host's own /dev/shm is there; a volume over it would hide what the variant is about."""
    return "hostipc" not in plan.topology.variants


def _claims(plan: Plan, bindings: Bindings) -> list[tuple[str, str]]:
    records = [(RECORDS_CLAIM, _RECORDS)] if bindings.records_folder is not None else []
    fsx = [(FSX_CLAIM, _FSX)] if plan.platform.storage.fsx != "none" else []
    return [*records, *fsx]


def _claim_volume(claim: str) -> Document:
    return {"name": claim, "persistentVolumeClaim": {"claimName": claim}}


def _mount(volume: str, path: str) -> Document:
    return {"name": volume, "mountPath": path}
