"""Plain data between the grader and the worker: nothing that crosses is ever unpickled, evaluated or imported."""
