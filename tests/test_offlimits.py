"""What exercise 2 asks for is off limits through every door of the library, and stays so."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

_WORKER = """
import gc, json, os, sys, warnings
warnings.simplefilter("ignore")
import torch
from torch.nn import functional as F
from autograder.sandbox import offlimits

x, labels = torch.randn(2, 5), torch.tensor([1, 4])
unit = torch.eye(5).expand(1, 2, 5, 5)
right = torch.log_softmax(x, -1)
offlimits.guard(True)
offlimits.seal()

def undone_by_the_collector():
    kind = type(torch._C._dispatch_library("IMPL", "aten", "", "", 0))
    gc.unfreeze()
    for thing in gc.get_objects():
        for other in (thing, *gc.get_referents(thing)):
            if type(other) is kind:
                other.reset()
    return torch.ops.aten._log_softmax(x, -1, False)

def undone_by_another_library(function):
    library = torch.library.Library("aten", "IMPL")
    library.impl("_log_softmax", function, "CPU")
    library._destroy()
    return torch.ops.aten._log_softmax(x, -1, False)

def undone_by_the_closure(function, *more):
    for cell in function.__closure__:
        try:
            return cell.cell_contents(x, -1, *more)
        except (TypeError, offlimits.OffLimitsError):
            pass
    return F.log_softmax(x, -1)

def tried(door):
    try:
        found = eval(door)
    except BaseException as error:
        return type(error).__name__
    return "right" if torch.allclose(found, right, atol=1e-4) else f"wrong: {found}"

said = {}
for door in json.load(sys.stdin):
    ours, theirs = os.pipe()
    if os.fork() == 0:
        os.write(theirs, tried(door).encode())
        os._exit(0)
    os.wait()
    said[door] = os.read(ours, 1000).decode()
print(json.dumps(said))
"""

_DOORS = [
    "x.log_softmax(-1)",
    "torch.softmax(x, -1).log()",
    "F.log_softmax(x, -1)",
    "torch.special.log_softmax(x, -1)",
    "torch.nn.LogSoftmax(-1)(x)",
    "torch._C.TensorBase.log_softmax(x, -1)",
    "super(torch.Tensor, x).log_softmax(-1)",
    "torch.ops.aten._log_softmax(x, -1, False)",
    "torch.ops.aten.log_softmax.int_out(x, -1, out=torch.empty_like(x))",
    "torch.library.get_kernel('aten::_log_softmax', 'CPU').call_boxed("
    "torch._C.DispatchKeySet(torch._C.DispatchKey.CPU), x, -1, False)",
    "torch._safe_softmax(x, -1).log()",
    "torch._masked_softmax(x, torch.zeros_like(x, dtype=torch.bool), -1).log()",
    "torch.sparse.log_softmax(x.to_sparse(), -1).to_dense()",
    "torch.sparse.softmax(x.to_sparse(), -1).to_dense().log()",
    "torch.ops.aten._sparse_log_softmax.int(x.to_sparse(), -1).to_dense()",
    "torch.ops.aten._softmax(x.to_mkldnn(), -1, False).to_dense().log()",
    "torch.ops.aten._softmax(torch.nested.as_nested_tensor([x]), -1, False)[0].log()",
    "torch.masked.log_softmax(x, -1)",
    "torch._refs.log_softmax(x, -1)",
    "torch._decomp.decompositions._log_softmax(x, -1, False)",
    "torch._decomp.decomposition_table[torch.ops.aten._log_softmax.default](x, -1, False)",
    "torch.ops.aten._log_softmax.default.py_kernels[torch._C.DispatchKey.Meta](x, -1, False)",
    "torch.library.get_kernel('aten::_log_softmax', 'Meta').call_boxed("
    "torch._C.DispatchKeySet(torch._C.DispatchKey.CPU), x, -1, False)",
    "torch.vmap(lambda row: torch.ops.aten._log_softmax(row, -1, False))(x)",
    "torch.jit.trace(lambda t: torch.ops.aten._log_softmax(t, -1, False), x)(x)",
    "F.scaled_dot_product_attention(x[None, :, None, :].expand(1, 2, 5, 5), unit, unit, scale=1.0)[0, :, 0].log()",
    "torch._scaled_dot_product_attention_math(x[None, :, None, :], unit, unit, scale=1.0)[0][0, :, 0].log()",
    "torch._scaled_dot_product_flash_attention_for_cpu(x[None, :, None, :], unit, unit, scale=1.0)[0][0, :, 0].log()",
    "-torch.stack([F.cross_entropy(x, torch.full((2,), c), reduction='none') for c in range(5)], 1)",
    "-torch.stack([torch._C._nn.cross_entropy_loss(x, torch.full((2,), c), None, 0) for c in range(5)], 1)",
    "F.nll_loss(right, labels)",
    "torch._decomp.decompositions.nll_loss_forward(right, labels, None, 1, -100)[0]",
]
_UNDOING = [
    "(offlimits.guard(False), torch.log_softmax(x, -1))[1]",
    "(offlimits.guard(True), offlimits.guard(False), torch.ops.aten._log_softmax(x, -1, False))[2]",
    "([offlimits._put(*was) for was in offlimits._was], torch.log_softmax(x, -1))[1]",
    "undone_by_the_closure(torch._decomp.decompositions._log_softmax, False)",
    "undone_by_the_closure(torch._refs.log_softmax)",
    "undone_by_the_collector()",
    "undone_by_another_library(torch.library.fallthrough_kernel)",
    "undone_by_another_library(lambda *arguments: arguments[0])",
    "undone_by_the_closure(F.softmax).log()",
    "undone_by_the_closure(torch.Tensor.softmax).log()",
]
_NAMED = "offlimits._library.reset()"
_OPEN = [
    "x - torch.logsumexp(x, -1, keepdim=True)",
    "torch.distributions.Categorical(logits=x).logits",
    "torch.distributions.Categorical(logits=x).probs.log()",
    "torch.distributions.OneHotCategorical(logits=x).probs.log()",
]


@pytest.fixture(scope="module")
def tried() -> dict[str, str]:
    """What came of each door, each in a process of its own, forked from a guarded one."""
    doors = json.dumps([*_DOORS, *_UNDOING, _NAMED, *_OPEN])
    done = subprocess.run([sys.executable, "-c", _WORKER], input=doors, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("door", _DOORS)
def test_a_door_is_shut(tried, door):
    assert tried[door] == "OffLimitsError"


@pytest.mark.parametrize("door", _UNDOING)
def test_it_cannot_be_put_back_in_a_worker(tried, door):
    assert tried[door] == "OffLimitsError"


def test_what_replaced_the_kernels_has_no_name_in_a_worker(tried):
    assert tried[_NAMED] == "AttributeError"


@pytest.mark.parametrize("door", _OPEN)
def test_what_is_allowed_goes_on_working(tried, door):
    assert tried[door] == "right"
