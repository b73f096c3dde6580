"""The AWS Karpenter in upstream's kwok form: the real controller, whose instances exist in its memory alone."""
