"""Onboarding: an introduction of the model, prompts to try, and connecting another model."""
