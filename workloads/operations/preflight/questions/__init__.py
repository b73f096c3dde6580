"""What is asked of AWS, of registries and of this computer: thin, read-only, and judged elsewhere."""
