"""Tests: sentences about the domain; the tree mirrors the code."""
