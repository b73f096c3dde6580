"""What a user gets wrong is told in one sentence, before anything slow is loaded."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.trainer.launching import tiny_config
from trainer.__main__ import main

GOOD = tiny_config().model_dump_json()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{}", "not a config of schema 1: command: Field required"),
        ("{", "not a config of schema 1: "),
        (GOOD.replace('"steps":6', '"steps":-1'), "steps: Input should be greater than or equal to 0"),
        (GOOD.replace('"seed":7', '"sede":7'), "sede: Extra inputs are not permitted"),
    ],
)
def test_a_bad_config_is_one_sentence(
    tmp_path: Path,
    text: str,
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "config.json"
    file.write_text(text)
    monkeypatch.setattr(sys, "argv", ["trainer", "--config", str(file)])
    assert main() == 2
    said = capsys.readouterr().err
    assert said.startswith(f"{file}: ")
    assert sentence in said
    assert len(said.splitlines()) == 1


def test_a_missing_config_is_one_sentence_and_exit_code_2(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "trainer", "--config", str(tmp_path / "none.json")],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 2
    assert done.stderr == (
        f"{tmp_path / 'none.json'}: can't be read (No such file or directory); give the file with --config\n"
    )


def test_the_config_is_the_only_flag(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["trainer", "--help"])
    with pytest.raises(SystemExit):
        main()
    assert {word for word in capsys.readouterr().out.split() if word.startswith("--")} == {"--config", "--help"}
