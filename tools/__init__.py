"""What the Makefile runs: environments and locks. Standard library only, as a bare Python runs it."""
