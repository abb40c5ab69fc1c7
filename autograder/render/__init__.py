"""Reports as people and programs want to read them: each module is a pure function of `Report`."""
