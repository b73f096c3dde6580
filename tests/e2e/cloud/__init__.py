"""A fake AWS account behind the SDKs' own protocols: moto, what it lacks, and what AWS refuses."""
