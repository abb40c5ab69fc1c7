"""What the students' tests of exercise 7 are run on: right implementations of several families, and wrong ones."""
