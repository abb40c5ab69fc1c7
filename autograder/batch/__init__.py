"""Grading whole classes: what has a stored result is not run again, and nothing is lost or done twice."""
