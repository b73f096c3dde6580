"""`pulumi up`: read the stack file, plan, build, say what to do next."""

import pulumi

from infra.program import build, plan_of
from infra.settings import read_settings

try:
    settings = read_settings()
    outputs = build(settings, plan_of(settings))
except ValueError as error:
    # What a user got wrong is a sentence, not a traceback.
    raise pulumi.RunError(str(error)) from None

for name, value in outputs.items():
    pulumi.export(name, value)
