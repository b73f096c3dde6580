"""Arithmetic: from a stack file to a complete plan with its prediction. Pure."""
