"""`python -m tests.e2e.providers.aws ENGINE`: the plugin pulumi-resource-aws."""

import sys

from tests.e2e.providers.aws.stand_in import Aws
from tests.e2e.providers.serving import serve
from tests.e2e.site import Site

if __name__ == "__main__":
    serve(Aws(Site.of_environment()), sys.argv[1:])
