"""What the runs of an experiment show, side by side, with evidence."""
