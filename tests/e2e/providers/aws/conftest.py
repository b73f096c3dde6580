"""A site with a fake cloud and no cluster, and Pulumi with the stand-ins before it."""

import json
import urllib.request

import boto3
import pytest

from tests.e2e.children import Children
from tests.e2e.cloud.start import reset_cloud, start_cloud
from tests.e2e.engine.installation import install
from tests.e2e.faults import plan_faults
from tests.e2e.providers.aws.aws_half import healthy_server
from tests.e2e.providers.aws.cloud import Waits
from tests.e2e.providers.aws.stand_in import Aws
from tests.e2e.site import ACCOUNT, REGION, Site
from tests.e2e.tools import module_path, tool_folder

TAGS = {"topolab:project": "topolab", "topolab:stack": "test"}


class Grounds:
    """The site, and what a test looks at: what stands in the account, and what was done to it."""

    def __init__(self, site):
        self.site = site

    def inventory(self):
        """Ids by kind."""
        with urllib.request.urlopen(f"{self.site.aws_endpoint}/topolab/inventory", timeout=30) as answer:
            return json.load(answer)

    def client(self, service):
        """Somebody else at the account."""
        return boto3.client(
            service,
            endpoint_url=self.site.aws_endpoint,
            region_name=REGION,
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
        )

    def refuse(self, *faults):
        """Faults to come; none takes them all away."""
        plan_faults(self.site.faults, faults)

    def begin(self):
        """An empty account."""
        reset_cloud(self.site.aws_endpoint)
        Waits(ready_s=20, gone_s=20, freed_s=0.6).save(self.site)
        for path in (self.site.operations, self.site.faults):
            path.unlink(missing_ok=True)
        return self


@pytest.fixture(scope="module", name="running_grounds")
def _running_grounds(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    (folder / "charts").mkdir()
    with Children(folder / "logs") as children, healthy_server(folder / "kubeconfig"):
        url = start_cloud(folder, children)
        site = Site(
            folder=folder,
            tools=folder,  # neither provider runs a tool
            kubeconfig=folder / "kubeconfig",
            aws_endpoint=url,
            charts=folder / "charts",
        )
        site.save()
        yield Grounds(site)


@pytest.fixture(name="grounds")
def _grounds(running_grounds):
    return running_grounds.begin()


@pytest.fixture(name="aws")
def _aws(grounds, monkeypatch):
    """The provider in this process, configured as the program configures it."""
    for name, value in grounds.site.environment().items():
        monkeypatch.setenv(name, value)
    provider = Aws(grounds.site)
    provider.configure(
        {
            "region": REGION,
            "allowedAccountIds": json.dumps([ACCOUNT]),
            "defaultTags": json.dumps({"tags": TAGS}),
        }
    )
    return provider


@pytest.fixture(scope="session", name="installation")
def _installation(tmp_path_factory):
    sdk = module_path("github.com/pulumi/pulumi/sdk/v3")
    return install(tmp_path_factory.mktemp("installation"), tool_folder() / "pulumi", sdk)
