"""The check of the account before anything is made: thin questions, and pure judgements of their answers."""
