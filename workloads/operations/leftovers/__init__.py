"""What a stack's cluster may leave in an account: found by tag, and swept where nobody else can want it."""
