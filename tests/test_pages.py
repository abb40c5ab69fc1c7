"""What workers share with the process that they are forked from, and what of it is copied for them."""

import subprocess
import sys

import pytest

_FAULTS = """
import gc, os, resource
from autograder.sandbox import pages, syscalls

def faults():
    'Pages that a child copies, or gets, while it makes objects and takes blocks.'
    ours, theirs = os.pipe()
    if os.fork() == 0:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        made = [{block} for number in range(3_000)]
        os.write(theirs, str(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before).encode())
        os._exit(0)
    os.wait()
    return int(os.read(ours, 100))

blocks = [{block} for number in range(60_000)]
for number in range(0, len(blocks), 20):
    blocks[number] = None
print(faults())
pages.fill_gaps()
print(faults())
"""


@pytest.mark.parametrize("block", ["object()", "complex(number, 1)", "bytes(20)", "bytes(200)", "bytearray(900)"])
def test_what_a_worker_makes_lies_together_on_pages_of_its_own(block):
    """The last comes from the heap of the C library, which Python leaves large blocks to."""
    code = _FAULTS.replace("{block}", block)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, after = map(int, done.stdout.split())
    assert after * 3 < before


def test_nothing_is_taken_where_neither_heap_says_what_is_free():
    code = "from autograder.sandbox import pages, syscalls; import sys; del sys._debugmallocstats; "
    code += "syscalls.heap = lambda: (0, 0); pages.fill_gaps(); print(len(pages._filling))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"
    assert done.stderr == ""
