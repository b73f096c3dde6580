"""The stand-in for pulumi-aws: a table of resource types over botocore, against the fake cloud of the site."""
