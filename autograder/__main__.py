"""`python -m autograder` is the command `autograder`."""

import sys

from autograder.cli import main

sys.exit(main())
