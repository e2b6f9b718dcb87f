"""Permissions: the actions of an agent, and the policies that allow or deny them."""
