"""From a name or a stack file to a plan."""

import pytest

from workloads.cli.arms import planned, stack_name
from workloads.planning.spec import SpecError

STACK = """
config:
  aws:region: us-east-1
  topolab:topology: g6e8xl-2x1-tcp
  topolab:platform: {zone: us-east-1b}
  topolab:run: {model: llama-3.2-1b, recipe: auto, steps: 12}
"""


def test_a_named_arm_brings_the_model_and_recipe_of_the_catalogue():
    config = planned("g6e12xl-4x4-efa1").config
    assert (config.model.name, config.recipe.name, config.steps) == ("llama-3-8b", "seed-g6e", 50)


def test_options_replace_the_usual_model_and_recipe():
    config = planned("g6e12xl-4x4-efa1", model="llama-3.2-1b", recipe="auto").config
    assert (config.model.name, config.recipe.name) == ("llama-3.2-1b", "auto")


@pytest.mark.parametrize("name", ["cpu-3x1-tcp", "g6e48xl-2x8-efa4", "l40sx2-1x2-local"])
def test_a_name_that_the_catalogue_does_not_list_is_planned_all_the_same(name):
    assert planned(name).topology.name == name


def test_a_stack_file_is_planned_as_it_says_under_the_name_of_its_stack(tmp_path):
    file = tmp_path / "Pulumi.cheap.yaml"
    file.write_text(STACK)
    config = planned(str(file)).config
    assert (config.experiment, config.arm, config.steps) == ("cheap", "g6e8xl-2x1-tcp", 12)


def test_the_stack_of_a_file_is_its_name_between_the_dots(tmp_path):
    assert stack_name(tmp_path / "Pulumi.dev.yaml") == "dev"


def test_every_fault_of_a_stack_file_is_said_at_once(tmp_path):
    file = tmp_path / "Pulumi.wrong.yaml"
    file.write_text(STACK.replace("steps: 12", "stesp: 12").replace("us-east-1b", "nowhere"))
    with pytest.raises(SpecError) as refused:
        planned(str(file))
    assert "run.stesp" in str(refused.value)
    assert "did you mean steps?" in str(refused.value)
    assert "platform.zone" in str(refused.value)


def test_a_missing_stack_file_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"Pulumi\.gone\.yaml: can't be read \(No such file or directory\)"):
        planned(str(tmp_path / "Pulumi.gone.yaml"))


def test_a_stack_file_that_is_no_text_is_refused(tmp_path):
    (tmp_path / "Pulumi.x.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="not text"):
        planned(str(tmp_path / "Pulumi.x.yaml"))


def test_a_stack_file_with_options_for_its_own_keys_is_refused(tmp_path):
    with pytest.raises(ValueError, match="leave the options out"):
        planned(str(tmp_path / "Pulumi.x.yaml"), model="tiny")


def test_an_unknown_model_is_answered_with_the_known_ones():
    with pytest.raises(SpecError, match=r"run\.model = \"llama-9\": unknown; known: llama-3-8b"):
        planned("g6e8xl-2x1-efa1", model="llama-9")


def test_an_unknown_recipe_names_the_four():
    with pytest.raises(SpecError, match="seed-p4d"):
        planned("g6e8xl-2x1-efa1", recipe="fastest")
