"""The parts of `scripts/generate_types.py`: read the schema, decide the Python types, write them."""
