"""The commands of `autograder`, a module each: `add` adds its arguments, and `run` of those runs it."""
