"""How verbs are found and how what went wrong reaches the user."""

import importlib
import subprocess
import sys

import pytest

from workloads.cli.main import VERBS, main

HEAVY = ("rich", "torch", "pulumi", "matplotlib", "numpy", "scipy", "fsspec", "boto3", "pydantic")


def test_help_names_every_verb_and_its_one_line(topo):
    called = topo("--help")
    assert called.code == 0
    for verb, sentence in VERBS.items():
        assert f"{verb} " in called.out
        assert sentence in " ".join(called.out.split())


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_of_the_table_has_a_command_of_that_name_and_a_help_of_its_own(verb, topo):
    assert importlib.import_module(f"workloads.cli.{verb.replace('-', '_')}").command.name == verb
    called = topo(verb, "--help")
    assert called.code == 0
    assert VERBS[verb].rstrip(".").split()[0] in called.out


def test_help_loads_neither_a_room_of_the_house_nor_a_heavy_package():
    code = (
        "import sys; from workloads.cli.main import main; main(['--help']);"
        f"print([m for m in sys.modules if m.split('.')[0] in {HEAVY} or m.startswith('workloads.planning')])"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.splitlines()[-1] == "[]"


def test_predict_loads_no_package_that_only_reports_need():
    code = (
        "import sys; from workloads.cli.main import main; main(['predict', 'cpu-2x1-tcp-50mbit']);"
        "print([m for m in ('matplotlib', 'numpy', 'scipy', 'fsspec', 'torch', 'pulumi') if m in sys.modules])"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.splitlines()[-1] == "[]"


def test_a_misspelt_verb_is_answered_with_the_nearest_one(topo):
    called = topo("predit", "cpu-1x2-local")
    assert called.code == 2
    assert "there is no verb 'predit'; did you mean predict?" in called.err


def test_an_unknown_option_is_refused(topo):
    called = topo("predict", "cpu-1x2-local", "--models", "tiny")
    assert called.code == 2
    assert "--models" in called.err


def test_what_the_user_got_wrong_is_one_sentence_without_a_traceback(topo):
    called = topo("predict", "g6e9xl-2x1-efa1")
    assert called.code == 2
    assert called.out == ""
    assert called.err.startswith("topo: 'g6e9xl-2x1-efa1' names no known machine")
    assert called.err.count("\n") == 1


def test_a_reader_that_has_gone_ends_the_verb_quietly():
    script = "import sys; from workloads.cli.main import main; sys.exit(main(['render', 'g6e12xl-4x4-efa1']))"
    shell = f'{sys.executable} -c "{script}" | head -c 10'
    ended = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=True)
    assert ended.stdout.startswith("---\napiVer")
    assert ended.stderr == ""


def test_ctrl_c_is_no_traceback(monkeypatch, capsys):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("workloads.cli.predict.planned", interrupted)
    assert main(["predict", "cpu-1x2-local"]) == 130
    assert capsys.readouterr().err.strip() == "topo: interrupted"


def test_completion_offers_the_verbs():
    environment = {"_TOPO_COMPLETE": "bash_complete", "COMP_WORDS": "topo pre", "COMP_CWORD": "1", "PYTHONPATH": "."}
    ended = subprocess.run(
        [sys.executable, "-m", "workloads"], env=environment, capture_output=True, text=True, check=True
    )
    assert ended.stdout.split() == ["plain,predict", "plain,preflight"]
