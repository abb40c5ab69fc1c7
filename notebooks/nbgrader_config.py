"""nbgrader's settings for the English course; `zh/nbgrader_config.py` takes them over for the Chinese one."""

from autograder.nbgrader_plugin import configure

c = get_config()  # noqa: F821 — nbgrader provides it

c.CourseDirectory.course_id = "bert"
configure(c, lang="en")

# What handing in late costs: from how many hours on, and the share of the score that is then lost.
c.LatePolicy.table = [
    (0.25, 0.10),
    (24.0, 0.25),
    (72.0, 0.50),
    (168.0, 1.00),
]
