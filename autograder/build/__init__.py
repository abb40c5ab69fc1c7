"""Everything that is generated from `solutions/`."""
