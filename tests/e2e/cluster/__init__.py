"""A Kubernetes cluster without machines: a real control plane, and processes where containers would be."""
