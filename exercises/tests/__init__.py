"""Visible checks: a few examples of what is asked for.  `autograder check` checks much more."""
