"""Plans: complete or refused; what the seeds measured lies inside what is predicted."""

import pytest

from trainer.config import TrainConfig
from workloads.catalogue.topologies import NAMED_TOPOLOGIES, parse_topology
from workloads.planning.plan import ArmInput, plan, plan_arms
from workloads.planning.spec import SpecError, parse_stack
from workloads.planning.transports import medium, ring_rate_gb_per_s

EC2_ROWS = [r for r in NAMED_TOPOLOGIES if not parse_topology(r.name).machine.is_local]


def planned(topology, *, region="us-east-1", token=False, platform=None, **run):
    local = topology.startswith(("cpu", "h200"))
    stack = {
        "topology": topology,
        "platform": ({} if local else {"zone": "us-east-1b"}) | (platform or {}),
        "run": run,
        "hfToken": token,
    }
    return plan(parse_stack(stack, "x"), region=None if local else region, experiment="x", arm="x")


def tiny(topology="cpu-2x1-tcp", **run):
    small = {"model": "tiny", "globalBatchTokens": 2048, "sequenceLength": 128}
    return planned(topology, **(small | run))


def refusal(topology, **kwargs):
    with pytest.raises(SpecError) as error:
        planned(topology, **kwargs)
    return str(error.value)


@pytest.mark.parametrize("row", EC2_ROWS, ids=lambda r: r.name)
def test_every_named_arm_is_planned_whole(row):
    p = planned(row.name, model=row.model, recipe=row.recipe, steps=50)
    assert TrainConfig.model_validate_json(p.config.model_dump_json()) == p.config
    assert "auto" not in str(p.deepspeed)
    assert p.resources.gpus == p.topology.gpus_per_pod
    assert p.resources.efa_devices == p.topology.efa_devices_per_pod
    assert p.prediction.memory.per_rank_gib.expected < (p.prediction.memory.limit_gib or 0)
    assert p.prediction.cost.run_usd is not None


@pytest.mark.parametrize("row", [r for r in EC2_ROWS if r.measured_total_s], ids=lambda r: r.name)
def test_the_seeds_totals_lie_inside_the_predicted_range(row):
    p = planned(row.name, model=row.model, recipe=row.recipe, steps=50)
    assert row.measured_total_s is not None
    measured, step = row.measured_total_s / 50, p.prediction.step.step_s
    assert step.low <= measured <= step.high
    assert step.expected == pytest.approx(measured, rel=0.25)


def test_the_seeds_global_batches():
    assert planned("g6e12xl-4x4-efa1", model="llama-3-8b", recipe="seed-g6e").config.sequences_per_step == 256
    assert planned("p4d24xl-1x4-efa4", model="llama-3-8b", recipe="seed-p4d").config.sequences_per_step == 16


def test_the_seeds_recipes_keep_torchruns_own_thread_count_and_others_state_it():
    def threads(p):
        return {v.name: v.value for v in p.environment}.get("OMP_NUM_THREADS")

    assert threads(planned("p4d24xl-1x4-efa4", model="llama-3-8b", recipe="seed-p4d")) is None
    one_pod = planned("p4d24xl-1x8-efa4", model="llama-3-8b")
    eight_pods = planned("p4d24xl-8x1-tcp", model="llama-3-8b")
    assert threads(one_pod) == threads(eight_pods) == "10"


def test_ranks_have_the_same_cpu_and_memory_whatever_the_pods():
    one_pod = planned("p4d24xl-1x8-efa4", model="llama-3-8b").config
    eight_pods = planned("p4d24xl-8x1-tcp", model="llama-3-8b").config
    assert one_pod.cpus_per_rank == eight_pods.cpus_per_rank
    assert one_pod.memory_gib_per_rank == eight_pods.memory_gib_per_rank


@pytest.mark.parametrize("pods", [1, 2, 4])
def test_micro_batch_and_accumulation_come_to_the_global_batch(pods):
    p = planned(f"g6e8xl-{pods}x1-efa1", globalBatchTokens=131072, sequenceLength=2048)
    assert p.config.token_slots_per_step == 131072


@pytest.mark.parametrize(
    ("topology", "kwargs", "sentence"),
    [
        ("g6e8xl-2x1-efa9", {}, "g6e.8xlarge has 1"),
        ("g6e8xl-2x1-efa1", {"model": "llama-9"}, "unknown; known: llama-3-8b, llama-3.2-1b, tiny"),
        ("g6e8xl-2x1-efa1", {"globalBatchTokens": 5000}, "nearest: 4096, 8192"),
        ("g6e8xl-2x1-efa1", {"globalBatchTokens": 100}, "nearest: 4096"),
        ("g6e8xl-2x1-efa1", {"sequenceLength": 262144}, "reaches 131072; lower it"),
        ("cpu-2x1-tcp", {"steps": 0, "checkpointEverySteps": 5}, "steps: 0 trains nothing, so nothing is saved"),
        ("cpu-2x1-tcp", {"steps": 0, "restarts": 1}, "steps: 0 leaves nothing to go on from"),
        ("g6e8xl-2x1-efa1", {"steps": 5}, "leaves no timed step after 5 warm-up steps"),
        ("g6e8xl-2x1-efa1", {"checkpointEverySteps": 5}, "checkpoints need platform.storage.fsx"),
        ("g6e8xl-2x1-efa1", {"restarts": 1}, "may stand on other nodes and would find no checkpoint"),
        ("cpu-2x1-tcp", {"restarts": 21}, "restarts"),
        ("cpu-2x1-tcp", {"onNanLoss": "skip"}, "is ZeRO stage 3 here, which applies such an update"),
        ("g6e8xl-2x1-efa1", {"platform": {"zone": None}}, "platform.zone = null: is missing"),
        ("g6e8xl-2x1-efa1", {"platform": {"zone": "eu-west-1a"}}, "lies outside aws:region us-east-1"),
        ("g6e8xl-2x1-efa1", {"platform": {"sharedWith": "a/b/c"}}, "sharing a platform isn't built yet"),
        ("g6e8xl-2x1-efa1", {"platform": {"storage": {"keep": True}}}, "keeps nothing without a file system"),
        ("g6e8xl-2x1-efa1", {"platform": {"records": "file:///r"}}, "pods on EC2 can't write there"),
        ("g6e8xl-2x1-efa1", {"platform": {"budgetUsd": 0.5}}, "raise the budget or lower run.steps"),
        (
            "g6e8xl-2x1-efa1",
            {"platform": {"budgetUsd": 5.0}, "region": "us-east-2"},
            "lies outside aws:region",
        ),
        ("g6e8xl-2x1-efa1", {"platform": {"ttlMinutes": 10}, "steps": 300}, "predicted to take"),
        ("g6e8xl-2x1-efa1", {"data": {"source": "hf:wikitext"}}, "which is gated: accept its licence"),
        ("g6e12xl-4x4-efa1", {"recipe": "seed-g6e", "data": {"feed": "packed"}}, "seed-g6e feeds lines"),
        (
            "g6e12xl-4x4-efa1",
            {"recipe": "seed-g6e", "globalBatchTokens": 4096},
            "seed-g6e fixes 4 x 4 x 16 ranks x 512 = 131072; leave the key out",
        ),
        (
            "cpu-2x1-tcp",
            {"model": "tiny", "recipe": "seed-g6e"},
            "offloads from GPUs and the machine has none",
        ),
        (
            "cpu-2x1-tcp",
            {"model": "tiny", "data": {"source": "hf:x"}},
            "knows only the embedded text's tokenizer",
        ),
        (
            "g6e8xl-2x1-efa1",
            {"platform": {"apiEndpoint": "private", "apiAccessCidrs": ["203.0.113.7/32"]}},
            "nobody reaches a private endpoint by them",
        ),
        (
            "g6e8xl-2x1-efa1",
            {"platform": {"admins": ["arn:aws:iam::123456789012:role/Lab"] * 2}},
            "named twice, and EKS takes an entry once",
        ),
        ("cpu-2x1-tcp", {"model": "llama-3-8b"}, "nearest that fits: model tiny"),
        ("cpu-2x1-tcp", {"model": "tiny", "platform": {"records": "s3://bucket/p"}}, "have no route out"),
        ("cpu-2x1-tcp", {"model": "tiny", "platform": {"storage": {"fsx": "scratch"}}}, "needs EC2"),
        ("g6e12xl-10x4-tcp-pg-hostnet-hostipc-tuned-shm", {}, "over 40 characters"),
    ],
)
def test_what_cannot_be_is_refused_with_field_value_and_remedy(topology, kwargs, sentence):
    assert sentence in refusal(topology, **kwargs)


def test_a_model_that_does_not_fit_says_by_how_many_gib():
    text = refusal("cpu-2x1-tcp", model="llama-3-8b")
    assert 'run.model = "llama-3-8b"' in text
    assert "GiB more than the 3.0 of cpu" in text


def test_offload_without_host_memory_is_refused():
    # One 8B model offloaded by a single rank wants 14 B a parameter of host memory and more.
    text = refusal("g6e12xl-1x1-local", model="llama-3-8b", recipe="seed-p4d")
    assert "GiB of host memory per pod for what it offloads" in text


def test_a_budget_in_a_region_without_prices_cannot_be_held():
    with pytest.raises(SpecError, match="no price is known in eu-west-1"):
        planned("g6e8xl-2x1-efa1", region="eu-west-1", platform={"zone": "eu-west-1a", "budgetUsd": 5.0})


def test_all_faults_of_a_plan_come_at_once():
    text = refusal("g6e8xl-2x1-efa9", model="llama-9", platform={"sharedWith": "a/b/c"})
    assert "run.model" in text
    assert "topology" in text


def test_a_topology_that_cannot_be_hides_no_other_fault():
    text = refusal("g6e8xl-2x1-efa9", steps=3, platform={"sharedWith": "a/b/c"})
    assert all(field in text for field in ("topology", "run.steps", "platform.sharedWith"))


def arms(*names, vary="topology", **run):
    small = {"model": "tiny", "globalBatchTokens": 2048, "sequenceLength": 128} | run
    return plan_arms(
        [ArmInput(name=n, stack=parse_stack({"topology": n, "run": small}, n), region=None) for n in names],
        vary=vary,
        experiment="e",
    )


def test_one_recipe_serves_all_arms_and_accumulation_follows_from_the_ranks():
    one, four = (p.config for p in arms("cpu-1x1-local", "cpu-2x2-tcp"))
    assert one.recipe.micro_batch == four.recipe.micro_batch
    assert one.recipe.accumulation == 4 * four.recipe.accumulation
    assert one.token_slots_per_step == four.token_slots_per_step == 2048
    assert one.recipe.zero == four.recipe.zero


def test_faults_of_an_experiment_name_the_arm():
    with pytest.raises(SpecError, match=r"cpu-3x1-tcp: run\.globalBatchTokens"):
        arms("cpu-1x1-local", "cpu-3x1-tcp")


def test_under_best_each_arm_has_its_own_recipe():
    names = ("h200x4-1x4-local", "h200x4-4x1-tcp-25gbit")
    run = {"model": "llama-3.2-1b", "recipe": "best", "globalBatchTokens": 131072, "sequenceLength": 2048}
    fast, slow = arms(*names, vary="best", **run)
    assert fast.config.token_slots_per_step == slow.config.token_slots_per_step
    auto = arms(*names, **(run | {"recipe": "auto"}))
    for best, plain in zip((fast, slow), auto, strict=True):
        assert best.prediction.step.step_s.expected <= plain.prediction.step.step_s.expected


def test_arms_of_vary_topology_may_not_mix_recipes():
    stacks = [
        parse_stack({"topology": "h200x4-1x4-local", "run": {"model": "llama-3.2-1b", "recipe": r}}, r)
        for r in ("auto", "seed-p4d")
    ]
    with pytest.raises(SpecError, match="differs between arms"):
        plan_arms(
            [ArmInput(name=f"a{i}", stack=s, region=None) for i, s in enumerate(stacks)],
            vary="topology",
            experiment="e",
        )


def test_a_pod_of_one_rank_expects_no_link():
    links = tiny("cpu-1x1-local", globalBatchTokens=2048).config.expectations.links
    assert all(link.pairs == 0 and link.expected == () for link in links)


@pytest.mark.parametrize(
    ("topology", "link_class", "expected", "forbidden"),
    [
        ("p4d24xl-1x4-efa4", "same-pod", "P2P", "NET/Libfabric"),
        ("g6e12xl-4x4-efa1", "same-pod", "SHM", "P2P"),
        ("g6e12xl-4x4-efa1", "other-node", "NET/Libfabric", "NET/Socket"),
        ("p4d24xl-4x1-efa1", "same-node", "NET/Libfabric+GDRDMA", "NET/Libfabric"),
        ("p4d24xl-4x1-tcp", "same-node", "NET/Socket", "P2P"),
        ("g6e12xl-4x4-tcp", "other-node", "NET/Socket", "NET/Libfabric"),
    ],
)
def test_each_link_class_expects_its_transport(topology, link_class, expected, forbidden):
    p = planned(topology, model="llama-3-8b")
    link = next(x for x in p.config.expectations.links if x.link_class == link_class)
    assert expected in link.expected
    assert forbidden in link.forbidden
    assert not set(link.expected) & set(link.forbidden)


def test_efa_topologies_pin_the_network_so_that_nothing_falls_back():
    values = {v.name: v.value for v in planned("g6e8xl-2x1-efa1").environment}
    assert values["NCCL_NET"] == "Libfabric"
    assert values["FI_EFA_USE_HUGE_PAGE"] == "0"
    assert {v.name: v.value for v in planned("g6e8xl-2x1-tcp").environment}["NCCL_NET"] == "Socket"


def test_variants_change_one_thing():
    plain = {v.name: v.value for v in planned("g6e8xl-2x1-tcp").environment}
    tuned = {v.name: v.value for v in planned("g6e8xl-2x1-tcp-tuned").environment}
    assert set(tuned) - set(plain) == {"NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD", "NCCL_MIN_NCHANNELS"}
    assert {k: v for k, v in tuned.items() if k in plain} == plain


@pytest.mark.parametrize(
    ("topology", "words"),
    [
        ("p4d24xl-4x1-tcp", "same-host TCP"),
        ("g6e12xl-4x4-tcp", "TCP over the NIC"),
        ("p4d24xl-4x1-efa1", "1 EFA a pod, looped through one host"),
        ("p4d24xl-2x8-efa4", "4 EFA a pod"),
        ("p4d24xl-1x8-efa4", "NVLink of one pod"),
        ("g6e12xl-1x4-local", "shared memory of one pod"),
        ("h200x4-1x4-local-shm", "shared memory of one pod"),
        ("cpu-1x2-local", "loopback of one pod"),
        ("cpu-2x1-tcp-50mbit", "TCP at 0.05 Gbit/s, dialled"),
        ("cpu-1x1-local", "nothing: one rank"),
    ],
)
def test_the_slowest_hop_is_called_what_it_is(topology, words):
    assert medium(parse_topology(topology)) == words


def test_same_host_tcp_is_never_predicted_by_the_nic():
    # The card of a p4d carries 100 Gb/s and that of a g6e.8xlarge 25: the same host's TCP knows neither.
    assert ring_rate_gb_per_s(parse_topology("p4d24xl-2x1-tcp")) == ring_rate_gb_per_s(
        parse_topology("g6e12xl-2x1-tcp")
    )


def test_stacks_that_will_be_compared_get_one_recipe():
    # Two nodes could keep all parameters gathered, one can't: alone each takes its own, named together the same.
    one, two = "p4d24xl-1x8-efa4", "p4d24xl-2x8-efa4"
    alone = [planned(t, model="llama-3-8b").config.recipe.zero for t in (one, two)]
    together = [
        planned(t, model="llama-3-8b", comparedWith=[other]).config.recipe for t, other in ((one, two), (two, one))
    ]
    assert alone[0] != alone[1]
    assert together[0].zero == together[1].zero
    assert together[0].micro_batch == together[1].micro_batch
    assert together[0].accumulation == 2 * together[1].accumulation


def test_a_companion_that_cannot_be_is_refused_by_its_name():
    assert "run.comparedWith g6e8xl-2x1-efa9" in refusal("g6e8xl-2x1-efa1", comparedWith=["g6e8xl-2x1-efa9"])


def test_push_and_pull_expect_each_its_own_direction():
    def expected(topology):
        links = planned(topology, model="llama-3-8b").config.expectations.links
        return next(x for x in links if x.link_class == "same-pod")

    assert expected("p4d24xl-1x8-efa4-push").expected == ("P2P",)
    assert expected("p4d24xl-1x8-efa4-pull").expected == ("P2P+read",)
    assert "P2P+read" in expected("p4d24xl-1x8-efa4-push").forbidden


def test_the_config_carries_what_was_predicted_and_how_it_is_paid_for():
    p = planned("g6e8xl-2x1-efa1")
    assert p.config.predicted.step_s.expected == p.prediction.step.step_s.expected
    assert p.config.rental.usd_per_node_hour == 4.52856
    assert "us-east-1, 2026-07-06" in (p.config.rental.price_source or "")
    spot = planned("g6e8xl-2x1-efa1", platform={"capacity": {"mode": "spot"}})
    assert (spot.config.rental.capacity, spot.config.rental.usd_per_node_hour) == ("spot", None)
    assert tiny().config.rental.capacity == "local"
