"""Sessions as text, HTML and training data."""
