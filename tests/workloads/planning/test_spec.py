"""The stack file's schema: every fault at once, each with field, value and remedy."""

import json

import pytest

from workloads.planning.spec import SpecError, merged, parse_experiment, parse_stack
from workloads.planning.stack_file import parse_stack_file

GOOD = {"topology": "g6e8xl-2x1-efa1", "platform": {"zone": "us-east-1b"}, "run": {"model": "llama-3.2-1b"}}


def refusal(patch):
    with pytest.raises(SpecError) as error:
        parse_stack(merged(GOOD, patch), "Pulumi.x.yaml")
    return str(error.value)


def test_defaults_are_the_documented_ones():
    stack = parse_stack(GOOD, "x")
    assert stack.platform.vpc_cidr == "10.0.0.0/16"
    assert stack.platform.capacity.mode == "onDemand"
    assert stack.platform.storage.fsx == "none"
    assert stack.platform.records == "managed"
    assert stack.platform.image == "stock"
    assert stack.platform.ttl_minutes == 240
    assert stack.run.recipe == "auto"
    assert stack.run.on_wrong_link == "stop"
    assert stack.hf_token is False


@pytest.mark.parametrize(
    ("patch", "sentence"),
    [
        ({"run": {"stepz": 3}}, "run.stepz = 3: unknown key; did you mean steps?"),
        ({"run": {"xylophone": 3}}, "run.xylophone = 3: unknown key; remove it"),
        ({"run": {"steps": "30"}}, 'run.steps = "30": Input should be a valid integer'),
        ({"run": {"steps": -1}}, "run.steps = -1"),
        ({"platform": {"zone": "us-east-1"}}, "not an availability zone; write one such as us-east-1b"),
        ({"platform": {"vpcCidr": "10.0.0.0/24"}}, "must be a /16 or /17"),
        ({"platform": {"vpcCidr": "10.0.0"}}, "platform.vpcCidr"),
        ({"platform": {"allowedAccounts": ["12"]}}, "not an AWS account id; write twelve digits in quotes"),
        ({"platform": {"records": "bucket"}}, "must be `managed`, s3://bucket/prefix or file:///folder"),
        ({"platform": {"image": "repo:tag"}}, "a reference by digest"),
        ({"platform": {"budgetUsd": 0}}, "platform.budgetUsd = 0"),
        (
            {"platform": {"capacity": {"mode": "free"}}},
            "'onDemand', 'spot', 'reservation' or 'capacityBlock'",
        ),
        ({"run": {"data": {"source": "wikitext"}}}, "must be `embedded`, hf:<id>, s3://... or file:/..."),
        ({"run": {"recipe": "fast"}}, "'auto', 'best', 'seed-g6e' or 'seed-p4d'"),
    ],
)
def test_a_fault_names_field_value_and_remedy(patch, sentence):
    assert sentence in refusal(patch)


def test_all_faults_are_reported_at_once():
    text = refusal({"run": {"stepz": 3, "seed": "x"}, "platform": {"zone": 5}})
    assert text.startswith("Pulumi.x.yaml: 3 faults\n")
    assert all(field in text for field in ("run.stepz", "run.seed", "platform.zone"))


def test_names_that_do_not_exist_are_reported_beside_a_broken_schema():
    text = refusal({"topology": "g6e8xl-2x1-efa2", "run": {"stepz": 3, "model": "llama-3.2-1"}})
    assert text.startswith("Pulumi.x.yaml: 3 faults\n")
    assert all(words in text for words in ("run.stepz", "g6e.8xlarge has 1", 'run.model = "llama-3.2-1": unknown'))


def test_a_missing_topology_is_named():
    with pytest.raises(SpecError, match=r"topology = .*: is missing; add it"):
        parse_stack({"platform": {"zone": "us-east-1b"}}, "Pulumi.x.yaml")


@pytest.mark.parametrize("image", ["stock", {"base": "repo/image:tag"}, "repo/image@sha256:" + "a" * 64])
def test_the_three_forms_of_image(image):
    assert parse_stack(merged(GOOD, {"platform": {"image": image}}), "x").platform.image is not None


def experiment(**changes):
    base = {"topology": "cpu-1x2-local", "run": {"model": "tiny"}}
    arms = [{"name": "a"}, {"name": "b", "patch": {"topology": "cpu-2x1-tcp"}}]
    return {"name": "e", "vary": "topology", "base": base, "arms": arms} | changes


def test_arms_patch_the_base():
    _, stacks = parse_experiment(experiment(), "e.yaml")
    assert [(name, s.topology, s.run.model) for name, s in stacks] == [
        ("a", "cpu-1x2-local", "tiny"),
        ("b", "cpu-2x1-tcp", "tiny"),
    ]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"arms": [{"name": "a"}, {"name": "a"}]}, "two arms of one name"),
        ({"arms": []}, "arms"),
        ({"vary": "weather"}, "'topology', 'recipe' or 'best'"),
        ({"repeats": 0}, "repeats = 0"),
        (
            {"arms": [{"name": "a", "patch": {"run": {"seed": 8}}}]},
            "arms.a.patch.run.seed = 8: under vary: topology an arm may change topology only",
        ),
        (
            {"vary": "recipe", "arms": [{"name": "a", "patch": {"topology": "cpu-2x1-tcp"}}]},
            "under vary: recipe an arm may change run.recipe only",
        ),
    ],
)
def test_an_experiment_that_cannot_compare_is_refused(changes, sentence):
    with pytest.raises(SpecError) as error:
        parse_experiment(experiment(**changes), "e.yaml")
    assert sentence in str(error.value)


STACK_FILE = """
config:
  aws:region: us-east-1
  topolab:topology: g6e8xl-2x1-efa1
  topolab:platform: {zone: us-east-1b}
  topolab:hfToken: {secure: v1:abc}
"""


def test_a_stack_file_gives_the_stack_its_region_and_the_presence_of_its_token():
    file = parse_stack_file(STACK_FILE, "Pulumi.x.yaml")
    assert file.region == "us-east-1"
    assert file.stack.hf_token is True
    assert "abc" not in repr(file)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("config: [", "not YAML near line"),
        ("a: 1", "no `config:` mapping"),
        ("- 1", "no `config:` mapping"),
        ("config: {aws:region: 5, topolab:topology: cpu-2x1-tcp}", "must be a region's name"),
        ("config: {topolab:topologyy: cpu-2x1-tcp}", "did you mean topology?"),
    ],
)
def test_a_stack_file_that_cannot_be_read_is_one_sentence(text, sentence):
    with pytest.raises(ValueError, match=r"Pulumi\.x\.yaml: ") as error:
        parse_stack_file(text, "Pulumi.x.yaml")
    assert sentence in str(error.value)


TOKEN = "hf_" + "secretsecret" * 3


@pytest.mark.parametrize("value", [TOKEN, "true", {"value": TOKEN}, [TOKEN]])
def test_a_token_that_is_no_secret_is_refused_and_never_repeated(value):
    text = json.dumps({"config": {"topolab:topology": "cpu-2x1-tcp", "topolab:hfToken": value}})
    with pytest.raises(SpecError, match="pulumi config set --secret topolab:hfToken") as error:
        parse_stack_file(text, "Pulumi.x.yaml")
    assert "Pulumi.x.yaml: hfToken" in str(error.value)
    assert "secretsecret" not in str(error.value)


@pytest.mark.parametrize("config", [{"topolab:hftoken": TOKEN}, {"topolab:run": {"hfToken": TOKEN}}])
def test_a_token_under_a_misspelt_key_is_not_repeated_either(config):
    with pytest.raises(SpecError, match="unknown key") as error:
        parse_stack_file(json.dumps({"config": {"topolab:topology": "cpu-2x1-tcp", **config}}), "Pulumi.x.yaml")
    assert "secretsecret" not in str(error.value)


@pytest.mark.parametrize(
    ("block", "sentence"),
    [
        ("203.0.113.7/24", "has host bits set"),
        ("everybody", "not an IPv4 block"),
        ("10.1.0.0/16", "sees no private address"),
    ],
)
def test_a_block_that_cannot_reach_the_public_endpoint_is_refused(block, sentence):
    with pytest.raises(SpecError, match=r"platform\.apiAccessCidrs\.0") as error:
        parse_stack({"topology": "cpu-2x1-tcp", "platform": {"apiAccessCidrs": [block]}}, "s")
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("admins", ["arn:aws:sts::123456789012:assumed-role/Lab/ann"], "an assumed role is a session; write its role"),
        ("admins", ["ann"], "not the ARN of a role or user"),
        ("admins", ["arn:aws-cn:iam::123456789012:role/Lab"], "not the ARN of a role or user"),
        ("permissionsBoundary", "arn:aws:iam::123456789012:role/Lab", "not the ARN of a policy"),
        ("apiEndpoint", "closed", "'public' or 'private'"),
    ],
)
def test_an_identity_or_endpoint_that_cannot_be_is_refused(key, value, sentence):
    with pytest.raises(SpecError, match=rf"platform\.{key}") as error:
        parse_stack({"topology": "cpu-2x1-tcp", "platform": {key: value}}, "s")
    assert sentence in str(error.value)


def test_by_default_and_as_written_blocks_of_the_api_server():
    def blocks(**platform):
        return parse_stack({"topology": "cpu-2x1-tcp", "platform": platform}, "s").platform.api_access_cidrs

    assert blocks() == ()
    assert blocks(apiAccessCidrs=["203.0.113.7/32"]) == ("203.0.113.7/32",)
