"""The first minute with our agent: what answers, prompts to try, and the way to connect a model."""
