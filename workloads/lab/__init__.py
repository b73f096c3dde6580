"""The local lab: runs the rendered pods of an arm on this machine, over links of a dialled rate."""
