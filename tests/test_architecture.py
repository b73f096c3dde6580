"""The house keeps its walls: who may import whom, facts that stand once, and the shape of the code."""

import ast
import re
import statistics
import sys
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.source import ROOT, Module, inside, modules, of, tracked_files
from workloads.catalogue.instances import INSTANCE_TYPES
from workloads.catalogue.prices import ON_DEMAND
from workloads.catalogue.versions import CHARTS, SEED_IMAGE, STOCK_IMAGE

OWN = ("trainer", "workloads", "infra", "tools", "tests")

CONTRACT = ("trainer.contract", "trainer.config", "trainer.record", "trainer.flops")
PURE = (
    "trainer.deepspeed_config", "trainer.nccl_log", "trainer.transports", "trainer.sent", "trainer.summary",
    "trainer.findings", "trainer.lines_verdict", "trainer.counters_verdict", "trainer.foreign_verdict",
    "trainer.verdict", "trainer.bandwidth", "trainer.marks",
)  # fmt: skip

_PLANNING = ("workloads.planning", "workloads.catalogue", *CONTRACT, *PURE)
MAY_IMPORT = {
    "trainer": ("trainer",),
    "workloads.catalogue": ("workloads.catalogue", *CONTRACT),
    "workloads.planning": _PLANNING,
    "workloads.rendering": ("workloads.rendering", *_PLANNING),
    "workloads.comparison": ("workloads.comparison", *_PLANNING),
    "workloads.operations": ("workloads.operations", "workloads.comparison", "workloads.rendering", *_PLANNING),
    "workloads.lab": ("workloads.lab", "workloads.comparison", "workloads.rendering", *_PLANNING),
    "workloads.cli": ("workloads", *CONTRACT, *PURE),
    "workloads.__main__": ("workloads.cli",),
    "infra": (
        "infra", "workloads.operations.leftovers", "workloads.rendering", "workloads.planning", "workloads.catalogue",
        *CONTRACT, *PURE,
    ),
    "__main__": ("infra",),
    "tools": ("tools",),
}  # fmt: skip
"""Package to what it may import of our own; the arrows of docs/decisions/0001-rooms.md."""

STANDARD_AND_PYDANTIC = {*sys.stdlib_module_names, "pydantic"}
THIRD_PARTY = {
    "workloads.catalogue": STANDARD_AND_PYDANTIC,
    "workloads.planning": {*STANDARD_AND_PYDANTIC, "yaml"},
    "workloads.rendering": {*STANDARD_AND_PYDANTIC, "yaml"},
    "tools": set(sys.stdlib_module_names),
    **dict.fromkeys((*CONTRACT, *PURE), STANDARD_AND_PYDANTIC),
}
"""Where start-up time, or a bare Python, limits what may be imported."""

READERS_OF_THE_ENVIRONMENT = {
    "trainer.distributed",  # what torchrun, Kubernetes and the plan set
    "trainer.mark",  # inside of a job that isn't ours: where its marks go
    "trainer.rank_processes",  # of other processes: which of a wrapped job's are its ranks
    "workloads.lab.capability",  # PATH, with the folders where Debian keeps tc
    "workloads.lab.arm",  # where a host that is a container has its GPU driver, handed on to pods with GPUs
    "infra.teardown",  # whether a cluster out of reach is given up: the word that Pulumi's Kubernetes provider reads
    "tests.conftest",  # CI
    "tests.e2e.tools.environment",  # where a user's cache is, and what stands on PATH, for building the tools
    "tests.e2e.site",  # where the run of the proof lives, told to the stand-ins that the engine starts
}

LAZY_LOADERS = {
    "workloads.cli.main",  # a verb, for the start-up of all others
    "trainer.__main__",  # what trains, so that a bad config is told before torch is loaded
    "trainer.kernels",  # Triton's kernels and FlashAttention, which a machine without a GPU hasn't
    "trainer.texts",  # datasets: two seconds of a run that reads other texts
}

VARIABLES_ELSEWHERE = {
    "workloads.lab.sandbox": {"NCCL_HOSTID"},  # one pod a host: only the lab has pods that share one
    "workloads.lab.loopback": {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"},  # no eth0 without a namespace
    "workloads.rendering.runtime": {"NCCL_NET_PLUGIN"},  # reads the plan's value for the image check
    "trainer.distributed": {"NCCL_DEBUG_FILE"},  # reads where NCCL writes
    "trainer.prove": {"NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE"},  # a job without a plan's environment
}
"""Communication variables named outside planning/transports.py."""


def layers() -> list[tuple[str, tuple[str, ...]]]:
    return list(MAY_IMPORT.items())


@pytest.mark.parametrize(("package", "allowed"), layers(), ids=[name for name, _ in layers()])
def test_arrows_between_rooms_point_one_way(package, allowed):
    wrong = [
        f"{module.where}:{line}: {name}"
        for module in of(package)
        for name, line in module.imports()
        if name.split(".")[0] in OWN and not any(inside(name, one) for one in allowed)
    ]
    assert wrong == []


def test_every_package_of_the_house_has_a_rule():
    homeless = [
        module.where
        for module in modules()
        if not inside(module.name, "tests")
        and module.name != "workloads"
        and not any(inside(module.name, package) for package in MAY_IMPORT)
    ]
    assert homeless == []


@pytest.mark.parametrize("package", THIRD_PARTY)
def test_light_rooms_stay_light(package):
    allowed = THIRD_PARTY[package]
    wrong = [
        f"{module.where}:{line}: {name}"
        for module in of(package)
        for name, line in module.imports()
        if (top := name.split(".")[0]) not in OWN and top not in allowed
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("package", "banned"),
    [("trainer", "pulumi"), ("workloads", "pulumi"), ("workloads", "torch"), ("infra", "torch")],
)
def test_no_room_imports_what_belongs_elsewhere(package, banned):
    wrong = [f"{m.where}:{line}" for m in of(package) for name, line in m.imports() if name.startswith(banned)]
    assert wrong == []


def test_modules_do_not_import_each_other_in_a_circle():
    names = {module.name for module in modules()}
    graph = {m.name: {name for name, _ in m.imports() if name in names and name != m.name} for m in modules()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"a circle: {' -> '.join(error.args[1])}")


def test_no_function_imports_and_what_is_loaded_late_is_loaded_for_its_time():
    inner = [
        f"{module.where}:{node.lineno}"
        for module in modules()
        for function in module.functions()
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert inner == []
    by_name = {m.name for m in of("trainer", "workloads", "infra", "tools") if "import_module(" in m.text}
    assert by_name == LAZY_LOADERS


def test_the_environment_is_read_where_it_is_said_to_be():
    readers = {
        module.name
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute | ast.Name)
        and (node.attr if isinstance(node, ast.Attribute) else node.id) in {"environ", "getenv"}
    }
    ours = {name for name in readers if not inside(name, "tests") or name == "tests.conftest"}
    assert ours <= READERS_OF_THE_ENVIRONMENT


def test_the_stacks_configuration_is_read_in_one_place():
    readers = [m.where for m in of("infra", "__main__") if re.search(r"\bConfig\(", m.text)]
    assert readers == ["infra/settings.py"]


def outside(*homes: str) -> list[Module]:
    """Program modules that are not one of the homes of a fact."""
    return [m for m in of("trainer", "workloads", "infra", "__main__") if not any(inside(m.name, h) for h in homes)]


def test_communication_variables_are_named_beside_their_reasons():
    wrong = [
        f"{module.where}:{line}: {value}"
        for module in outside("workloads.planning.transports")
        for value, line in module.strings()
        if re.fullmatch(r"(NCCL|FI|GLOO|OFI_NCCL)_[A-Z0-9_]+", value)
        and value not in VARIABLES_ELSEWHERE.get(module.name, set())
    ]
    assert wrong == []


def test_instance_types_and_prices_stand_in_the_catalogue_alone():
    facts = {kind.name for kind in INSTANCE_TYPES} | {str(price) for price in ON_DEMAND.usd_per_hour.values()}
    wrong = [
        f"{module.where}:{line}: {fact}"
        for module in outside("workloads.catalogue")
        for value, line in module.strings()
        for fact in facts
        if re.search(rf"(?<![\w.]){re.escape(fact)}(?!\w)", value)
    ]
    assert wrong == []


def test_versions_of_what_is_installed_stand_in_one_list():
    pins = {chart.version.removeprefix("v") for chart in CHARTS} | {STOCK_IMAGE, SEED_IMAGE}
    pins |= {chart.name for chart in CHARTS if "://" in chart.name}
    wrong = [
        f"{module.where}:{line}: {pin}"
        for module in outside("workloads.catalogue")
        for value, line in module.strings()
        for pin in pins
        if pin in value
    ]
    assert wrong == []


def test_the_flops_formula_stands_once():
    terms = re.compile(r"\b6(\.0)? \* \w*parameters|\b12(\.0)? \* \w+\.layers")
    homes = {m.where for m in of("trainer", "workloads", "infra") if terms.search(ast.unparse(m.tree))}
    assert homes == {"trainer/flops.py"}


def test_no_deepspeed_value_is_left_to_auto():
    assert not list(ROOT.glob("**/ds_config*.json"))
    wrong = [f"{m.where}:{line}" for m in of("trainer") for value, line in m.strings() if value == "auto"]
    assert wrong == []


def lengths() -> list[tuple[int, str]]:
    return [
        ((function.end_lineno or 0) - function.lineno + 1, f"{module.where}:{function.lineno} {function.name}")
        for module in modules()
        for function in module.functions()
    ]


def test_functions_are_short():
    counts = [count for count, _ in lengths()]
    assert [name for count, name in lengths() if count > 60] == []
    assert statistics.median(counts) <= 10
    assert statistics.quantiles(counts, n=10)[-1] <= 30


def test_files_are_short():
    long = {module.where: count for module in modules() if (count := module.text.count("\n")) > 400}
    assert long == {}


def test_components_and_verbs_fit_one_screen_or_two():
    long = {m.where: count for m in of("infra", "workloads.cli") if (count := m.text.count("\n")) > 150}
    assert {where: count for where, count in long.items() if where != "infra/platform.py"} == {}
    constructors = [
        f"{module.where}:{function.lineno}"
        for module in of("infra")
        for function in module.functions()
        if function.name == "__init__" and (function.end_lineno or 0) - function.lineno + 1 > 60
    ]
    assert constructors == []


def test_no_module_is_a_drawer():
    drawers = {"utils", "util", "common", "helpers", "constants", "misc"}
    assert [m.where for m in modules() if m.path.stem in drawers] == []


def test_the_program_is_a_page():
    assert (ROOT / "__main__.py").read_text().count("\n") <= 40


def test_every_folder_of_tests_mirrors_one_of_the_tree():
    tests = {path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")}
    special = {"e2e"}
    strangers = [str(p) for p in tests if p.parts and p.parts[0] not in special and not (ROOT / p).is_dir()]
    assert strangers == []


NEVER = {
    "a path of somebody's machine": re.compile(r"/(?:home|Users)/(?!user\b)\w+/|/tmp/envs|/work/"),
    "a package registry's host": re.compile(
        r"\b(?:pypi\.org|pythonhosted\.org|proxy\.golang\.org|registry\.npmjs\.org|crates\.io|deb\.debian\.org)\b"
    ),
    "an access key": re.compile(r"\bAKIA[0-9A-Z]{16}\b"),
}


def test_no_file_names_what_belongs_to_one_machine():
    found = []
    for path in tracked_files():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        if path.name == "test_architecture.py":
            continue
        found += [f"{path.relative_to(ROOT)}: {what}" for what, pattern in NEVER.items() if pattern.search(text)]
    assert found == []
