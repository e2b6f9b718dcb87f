"""What `scripts/generate_types.py` is made of: read the schema, decide the Python types, write them."""
