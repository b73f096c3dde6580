"""The real Pulumi engine as users run it: its Python host, its plugin folders, and a driver of `pulumi ...`."""
