"""What fetched values mean for a stack: pure functions from facts to rows."""
