"""Facts about availability zones that AWS's calls don't tell."""

CONTROL_PLANE_EXCLUDED_ZONE_IDS = ("use1-az3", "usw1-az2", "cac1-az3")
"""Zones in which EKS puts no control plane (EKS User Guide, network requirements)."""
