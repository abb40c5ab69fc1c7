"""What PyTorch does when a function is called for the first time, done before any worker is forked.

It makes the function's parser from the text of its signatures, strings of the names in it, and looks up kernels: some
10 µs and a few pages for every function, which a worker is spared if the process it is forked from has done it.
"""

from __future__ import annotations

import contextlib
from typing import Any

#: What solutions, visible checks and tests are mostly made of; `x` is (2, 3), `n` (2, 3) of integers, `b` its booleans.
_CALLS = """
torch.tensor([[1.0, 2.0]], dtype=torch.float32, requires_grad=True)
torch.as_tensor([1, 2]), torch.from_numpy(np.zeros(2)), torch.empty(2), torch.full((2,), 1.0), torch.full_like(x, 1.0)
torch.zeros(2, 3), torch.ones(2, 3), torch.zeros_like(x), torch.ones_like(x), torch.empty_like(x), torch.eye(3)
torch.arange(3), torch.arange(0.0, 3.0, 1.0, device="cpu"), torch.linspace(0, 1, 3), x.new_zeros(2), x.new_full((2,), 1)
torch.rand(2, 3), torch.randn(2, 3), torch.randint(0, 5, (2, 3)), torch.randperm(3), torch.rand_like(x)
torch.rand(2, generator=generator), torch.bernoulli(x.sigmoid(), generator=generator), x.clone().bernoulli_(0.5)
torch.multinomial(x.sigmoid(), 1, generator=generator), x.clone().normal_(), x.clone().uniform_(), torch.manual_seed(0)
x + x, x - 1, 1 - x, x * 2.0, x / 2, 2 / x, x // 1, n % 2, x ** 2, -x, x @ x.T, x.t() @ x, abs(x), n // 2
x == x, x != 0, x < 1, x <= 1, x > 0, x >= 0, ~b, b & b, b | b, b ^ b, bool(b.any()), bool((x == x).all()), len(x)
x[0], x[:, 1:], x[..., 0], x[b], x[n[:, :2] % 2], x[None], x[torch.arange(2), n[:, 0]], x[b].numel(), list(x)
y = x.clone(); y[0] = 1.0; y[b] = 0.0; y[:, 0] = y[:, 1]; y[torch.arange(2), n[:, 0]] = 2.0; y += 1; y *= 2; y -= 1
y /= 2
x.exp(), x.log(), x.sqrt(), x.abs(), x.tanh(), x.sigmoid(), x.relu(), x.sin(), x.cos(), x.erf(), x.square(), x.rsqrt()
torch.exp(x), torch.log(x), torch.sqrt(x), torch.tanh(x), torch.sigmoid(x), torch.erf(x), torch.log1p(x), torch.expm1(x)
x.sum(), x.sum(-1), x.sum(dim=-1, keepdim=True), x.mean(), x.mean(-1, keepdim=True), x.std(), x.var(-1, unbiased=False)
x.max(), x.max(-1), x.max(dim=-1, keepdim=True).values, x.min(), x.amax(-1, keepdim=True), x.amin(), x.norm(), x.prod()
torch.sum(x), torch.mean(x), torch.max(x), torch.max(x, -1), torch.maximum(x, x), torch.minimum(x, x), torch.amax(x, -1)
x.any(), x.all(), b.any(-1), b.all(dim=-1, keepdim=True), b.sum(), b.sum(-1), torch.any(b), torch.all(b)
x.argmax(-1), x.argmin(), x.argsort(), x.sort(), x.topk(1), x.cumsum(-1), b.nonzero(), b.nonzero(as_tuple=True)
n.unique()
torch.argmax(x, -1), torch.nonzero(b), torch.cumsum(x, -1), torch.sort(x), torch.topk(x, 1), torch.unique(n)
torch.logsumexp(x, -1), x.logsumexp(-1, keepdim=True), x.softmax(-1), x.log_softmax(-1), torch.softmax(x, -1)
torch.isnan(x).any(), torch.isinf(x), torch.isfinite(x).all(), x.isnan(), x.isfinite(), torch.nan_to_num(x), x.isinf()
torch.where(b, x, 0.0), torch.where(b, x, x), x.where(b, x), x.masked_fill(b, 0.0), x.clone().masked_fill_(b, 0.0)
x.masked_select(b), x.gather(-1, n), torch.gather(x, -1, n), x.index_select(0, n[0, :1]), x.clone().scatter_(-1, n, 1.0)
x.clone().fill_(0.0), x.clone().zero_(), x.clone().copy_(x), x.clone().clamp_(0, 1), x.clamp(min=0.0)
torch.clamp(x, 0, 1)
x.view(-1), x.view(3, 2), x.reshape(-1, 2), x.flatten(), x.transpose(0, 1), x.permute(1, 0), x.T, x.mT, x.unsqueeze(-1)
x.squeeze(), x.expand(2, 2, 3), x.repeat(2, 1), x.contiguous(), x.flip(-1), x.roll(1, -1), x.chunk(1), x.split(1)
x.unbind()
torch.cat([x, x], dim=-1), torch.stack([x, x], 0), torch.transpose(x, 0, 1), torch.reshape(x, (-1,))
torch.permute(x, (1, 0))
x.triu(), x.tril(), torch.triu(x), torch.tril(torch.ones(3, 3, dtype=torch.bool)), x.diff(), torch.outer(x[0], x[0])
x.clone(), x.detach(), x.to(torch.float64), x.to("cpu"), x.to(x), x.float(), x.double(), x.half(), x.bfloat16()
x.long()
n.float(), n.bool(), n.int(), b.long(), b.float(), b.int(), x.type(torch.float64), x.cpu(), x.data, x.grad
x.is_contiguous()
x[0, 0].item(), float(x[0, 0]), int(n[0, 0]), bool(b[0, 0]), x.tolist(), n.tolist(), x.numpy(), np.asarray(x), repr(x)
repr(n), np.linalg.norm(x.numpy())
x.shape, x.size(), x.size(-1), x.dim(), x.ndim, x.numel(), x.dtype, x.device, x.stride(), x.element_size(), x.data_ptr()
x.is_floating_point(), torch.is_tensor(x), torch.is_floating_point(x), torch.finfo(x.dtype).min
torch.iinfo(n.dtype).max
torch.allclose(x, x), torch.equal(x, x), torch.isclose(x, x), x.equal(x), torch.Generator()
torch.matmul(x, x.T), torch.bmm(x[None], x.T[None]), torch.mm(x, x.T), torch.einsum("ij,kj->ik", x, x)
torch.dot(x[0], x[0])
torch.bincount(n.flatten()), n.flatten().bincount(), torch.isin(n, n), torch.log2(x), torch.pow(x, 2), x.pow(2), x.neg()
F.embedding(n, x), F.linear(x, x), F.layer_norm(x, (3,)), F.gelu(x), F.relu(x), F.dropout(x, 0.1), F.one_hot(n, 5)
F.pad(x, (0, 1))
F.softmax(x, dim=-1), F.log_softmax(x, dim=-1), F.cross_entropy(x, n[:, 0], ignore_index=-100), F.nll_loss(x, n[:, 0])
nn.Embedding(5, 3)(n), nn.Linear(3, 2)(x), nn.LayerNorm(3)(x), nn.Dropout(0.1)(x), nn.Parameter(x)
nn.Sequential(nn.GELU())(x)
with torch.no_grad(): x * 2
z = x.clone().requires_grad_(True); ((z * z).sum() + z.mean() + z.exp().log().sum() + (z @ z.T).sum()).backward()
z.grad
z = x.clone().requires_grad_()
torch.stack([z[b].sum(), z[0].sum(), z.max(), torch.where(b, z, 0.0).sum()]).sum().backward()
z = x.clone().requires_grad_()
(z - z.amax(-1, keepdim=True) - z.logsumexp(-1, keepdim=True)).gather(-1, n).neg().mean().backward()
z = x.clone().requires_grad_(); (z.bfloat16().float() + z.half().float()).mean().backward()
z = x.clone().requires_grad_()
(z / 2 + z.masked_fill(b, 0.0) + z.unsqueeze(0).transpose(1, 2).reshape(2, 3)).sum().backward()
""".strip().split("\n")


def common_calls() -> None:
    """Call them all with small tensors.  What the installed version of PyTorch lacks is left out."""
    import numpy as np
    import torch
    from torch import nn

    names: dict[str, Any] = {"np": np, "torch": torch, "nn": nn, "F": nn.functional}
    names |= {"x": torch.ones(2, 3), "n": torch.ones(2, 3, dtype=torch.int64), "b": torch.ones(2, 3, dtype=torch.bool)}
    names["generator"] = torch.Generator()
    for call in _CALLS:
        with contextlib.suppress(Exception):
            exec(call, names)
