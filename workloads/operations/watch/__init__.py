"""A run from capacity to record, looked at again and again; and ending it without destroying its platform."""
