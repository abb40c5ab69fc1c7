"""The report of a class: a folder of pages that shows what a class knows, and what it has misunderstood."""
