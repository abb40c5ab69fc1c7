"""Slow loops that read like the definition: what the hidden checks compare with."""
