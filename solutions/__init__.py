"""Reference solutions: the single source of stubs, notebooks and worked answers."""
