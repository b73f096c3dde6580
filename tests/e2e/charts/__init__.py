"""The charts of the catalogue on disk: the real ones from the Go module cache, small stand-ins of ours for the rest."""
