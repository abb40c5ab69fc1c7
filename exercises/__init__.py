"""The exercises: fill the stubs `ex01…` in this folder."""
