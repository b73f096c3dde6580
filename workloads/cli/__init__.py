"""The verbs of `topo`."""
