"""What happens to a stack that stands: somebody's hand, a slow, a throttling AWS, a server or a webhook away."""

import time
from dataclasses import dataclass
from typing import Any

import boto3
import pytest

from tests.e2e.children import wait_until
from tests.e2e.engine.events import kind_of, name_of
from tests.e2e.engine.running import Outcome
from tests.e2e.faults import Fault
from tests.e2e.operations import Operation, position
from tests.e2e.site import REGION
from tests.e2e.standing import Standing

pytestmark = pytest.mark.e2e

STACK = "dev"
OTHER = "g6e8xl-2x1-tcp"
DEPLOYMENT = "/apis/apps/v1/namespaces/kubeflow-system/deployments/kubeflow-trainer-controller-manager"
POOL = "/apis/karpenter.sh/v1/nodepools/gpu-g6e8xl"
AWAY_S = 20.0
SLOW_S = 4.0


@dataclass(kw_only=True)
class Story:
    """One stack, disturbed again and again."""

    slow: Outcome
    making: list[Operation]
    throttled: int
    drift: Outcome
    mended: Outcome
    pool_is_back: bool
    tag: str | None
    away: Outcome
    jobs: list[str]
    deaf: Outcome
    jobs_then: list[str]
    heard: Outcome
    jobs_in_the_end: list[str]
    left: dict[str, list[str]]


@pytest.fixture(scope="module")
def story(standing, module_workspace) -> Story:
    user = module_workspace
    user.init(STACK)
    standing.faults(
        Fault(who="aws", match="^CreateNatGateway", delay_s=SLOW_S),
        Fault(who="aws", match="^CreateSubnet", times=2, error="Throttling"),
    )
    slow = user.up(STACK).must_succeed()
    making = standing.operations()
    throttled = sum(one.outcome == "Throttling" for one in making)
    standing.faults()

    (subnet,) = [one["id"] for one in user.resources(STACK) if one["urn"].endswith("Subnet::gpu-private")]
    ec2 = account(standing)
    ec2.delete_tags(Resources=[subnet], Tags=[{"Key": "Name"}])
    standing.api.delete(POOL)
    wait_until(lambda: not standing.api.exists(POOL), 60, "the NodePool is gone")
    drift = user.refresh(STACK).must_succeed()
    mended = user.up(STACK).must_succeed()
    pool_is_back = standing.api.exists(POOL)
    tags = {tag["Key"]: tag["Value"] for tag in ec2.describe_subnets(SubnetIds=[subnet])["Subnets"][0]["Tags"]}

    user.set(STACK, "topolab:run.attempt", "2")
    away = up_while_the_api_server_is_away(standing, user)
    jobs = job_names(standing)

    user.set(STACK, "topolab:topology", OTHER)
    scale_trainer(standing, 0)
    deaf = user.up(STACK, "--skip-preview")
    jobs_then = job_names(standing)
    scale_trainer(standing, 1)
    heard = user.up(STACK, "--skip-preview").must_succeed()
    jobs_in_the_end = job_names(standing)
    user.destroy(STACK).must_succeed()
    return Story(
        slow=slow,
        making=making,
        throttled=throttled,
        drift=drift,
        mended=mended,
        pool_is_back=pool_is_back,
        tag=tags.get("Name"),
        away=away,
        jobs=jobs,
        deaf=deaf,
        jobs_then=jobs_then,
        heard=heard,
        jobs_in_the_end=jobs_in_the_end,
        left=standing.left(),
    )


def account(standing: Standing) -> Any:
    make: Any = boto3.client
    return make(
        "ec2",
        region_name=REGION,
        endpoint_url=standing.site.aws_endpoint,
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
    )


def up_while_the_api_server_is_away(standing: Standing, user: Any) -> Outcome:
    standing.cluster.stop_api_server()
    gone = time.monotonic()
    running = user.start_up(STACK, "--skip-preview")
    running.wait_for(lambda: time.monotonic() - gone > AWAY_S, 2 * AWAY_S, "the outage is over")
    standing.cluster.start_api_server()
    outcome: Outcome = running.finish()
    return outcome


def job_names(standing: Standing) -> list[str]:
    return [one["metadata"]["name"] for one in standing.api.items("/apis/trainer.kubeflow.org/v1alpha1/trainjobs")]


def scale_trainer(standing: Standing, replicas: int) -> None:
    """The one pod that answers Trainer's webhooks, gone or Ready again."""
    standing.api.patch(f"{DEPLOYMENT}/scale", {"spec": {"replicas": replicas}})

    def is_done() -> bool:
        status = standing.api.get(DEPLOYMENT)["status"]
        return (status.get("replicas", 0), status.get("readyReplicas", 0)) == (replicas, replicas)

    wait_until(is_done, 60, f"{replicas} pods of Trainer")


def names(urns: tuple[str, ...]) -> set[str]:
    return {f"{kind_of(urn).rsplit(':', 1)[-1]} {name_of(urn)}" for urn in urns}


def test_a_slow_and_throttling_aws_is_waited_for(story):
    assert story.throttled == 2
    assert story.slow.changes.failed == ()
    gateway = position(story.making, who="aws", verb="CreateNatGateway")
    assert story.making[gateway].details["delayed_s"] >= SLOW_S
    through_it = [one for one in story.making[gateway:] if one.verb == "CreateRoute"]
    assert through_it, "the routes to the gateway wait for it"


def test_a_refresh_sees_what_somebody_did(story):
    assert "NodePool node-pool" in names(story.drift.changes.deleted)
    assert "Subnet gpu-private" in names(story.drift.changes.updated)


def test_and_the_next_up_puts_it_right_and_touches_nothing_else(story):
    assert names(story.mended.changes.created) == {"NodePool node-pool"}
    assert names(story.mended.changes.updated) == {"Subnet gpu-private"}
    assert (story.mended.changes.replaced, story.mended.changes.deleted) == ((), ())
    assert story.pool_is_back
    assert story.tag == "topolab-dev-gpu-private"


def test_an_api_server_that_is_away_for_twenty_seconds_is_waited_for(story):
    assert story.away.must_succeed().seconds > AWAY_S
    assert story.jobs == ["g6e8xl-2x1-efa1-2"]


def test_while_trainers_webhook_is_away_an_up_fails_with_its_name_and_the_run_that_is_there_stays(story):
    assert story.deaf.returncode != 0
    assert any("failed calling webhook" in error and "trainer.kubeflow.org" in error for error in story.deaf.errors)
    assert names(story.deaf.changes.failed) == {"ClusterTrainingRuntime runtime"}
    assert story.jobs_then == story.jobs


def test_and_once_it_is_back_the_next_up_finishes(story):
    assert "ClusterTrainingRuntime runtime" in names((*story.heard.changes.created, *story.heard.changes.replaced))
    assert story.jobs_in_the_end == [f"{OTHER}-2"]


def test_and_the_destroy_ends_empty(story):
    assert story.left == {}
