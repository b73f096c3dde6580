"""The verbs of `topo`: each reads its arguments, calls one room of the house and prints."""
