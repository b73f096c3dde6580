"""Stand-ins for the providers that can't be downloaded here (aws, eks, kubernetes), behind Pulumi's protocol."""
