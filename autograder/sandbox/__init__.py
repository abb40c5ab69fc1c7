"""Running a student's code in a process that has nothing to steal and nothing to break."""
