"""What looks at accounts and clusters, and tidies them: the only part of workloads that calls AWS or Kubernetes."""
