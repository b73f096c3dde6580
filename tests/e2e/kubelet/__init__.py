"""The process kubelet: nodes of a real cluster whose pods are processes of this machine, in `workloads.lab.sandbox`."""
