"""Kubernetes quantities in the form that the API server would give back."""


def cpu(millis: int) -> str:
    """`40`, or `1500m` where it isn't whole."""
    return str(millis // 1000) if millis % 1000 == 0 else f"{millis}m"


def gib(number: int) -> str:
    """`384Gi`, or `1Ti` where it is whole."""
    return f"{number // 1024}Ti" if number % 1024 == 0 else f"{number}Gi"
