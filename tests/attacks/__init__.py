"""Hostile submissions, and the proof that none of them gets anywhere."""
