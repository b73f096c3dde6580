"""Why pods wait: what the controllers said in events and conditions, joined into one sentence and one remedy."""
