"""What this computer is: its GPUs as `nvidia-smi` shows them."""

import shutil
import subprocess

from workloads.catalogue.machines import CPU, Machine, detected_machine

_QUERY = ("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits")
_TOPOLOGY = ("nvidia-smi", "topo", "-m")


def detect_machine() -> Machine:
    """This computer as a machine of the catalogue; `cpu` where no GPU answers."""
    if shutil.which(_QUERY[0]) is None:
        return CPU
    answer = subprocess.run(_QUERY, capture_output=True, text=True, check=False)
    matrix = subprocess.run(_TOPOLOGY, capture_output=True, text=True, check=False)
    return machine_of(answer.stdout if answer.returncode == 0 else "", matrix.stdout)


def machine_of(gpu_rows: str, topology_matrix: str) -> Machine:
    """The machine of nvidia-smi's rows `name, memory in MiB` and its `topo -m` matrix."""
    rows = [row.rsplit(",", 1) for row in gpu_rows.splitlines() if "," in row]
    names = [row[0].strip() for row in rows]
    memory_mib = min((int(float(row[1])) for row in rows), default=0)
    return detected_machine(names, memory_mib, nvlink=_all_nvlink(topology_matrix, len(names)))


def _all_nvlink(matrix: str, gpus: int) -> bool:
    """True where each GPU's row names NV<links> for every other GPU."""
    rows = [line.split() for line in matrix.splitlines() if line.startswith("GPU")]
    pairs = [cell for row in rows for cell in row[1 : 1 + gpus] if cell != "X"]
    return bool(pairs) and all(cell.startswith("NV") for cell in pairs)
