"""Visible checks: a few examples of what is asked for.  Grading checks much more."""
