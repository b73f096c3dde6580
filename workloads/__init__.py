"""Thinks and looks: catalogue, planning, rendering, comparison, lab and the command line."""
