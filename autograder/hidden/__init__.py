"""Hidden checks, one module an exercise.  Never shipped to students, never importable in a worker."""
