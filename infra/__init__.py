"""Pulumi components and the program that joins them."""
