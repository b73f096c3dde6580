"""Plan to Kubernetes objects as plain dicts, and to the Pods that the controllers would make. Pure."""
