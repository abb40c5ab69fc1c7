"""nbgrader's settings for the Chinese course: those of the English one, in Chinese and with a gradebook of its own."""

from autograder.nbgrader_plugin import configure

load_subconfig("../nbgrader_config.py")  # noqa: F821 — nbgrader provides it
c = get_config()  # noqa: F821

c.CourseDirectory.course_id = "bert-zh"
configure(c, lang="zh")
