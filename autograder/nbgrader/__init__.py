"""nbgrader keeps the gradebook, this course's grader makes the grades: what connects the two."""
