"""Facts: instance types, machines, models, topologies, versions, prices. Each once, with its source."""
