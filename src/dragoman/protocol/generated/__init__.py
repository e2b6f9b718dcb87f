"""Code made by scripts/generate_types.py from the pinned ACP schema."""
