"""Tools for the authors of checks: do the checks catch every wrong solution, and spare every right one?"""
