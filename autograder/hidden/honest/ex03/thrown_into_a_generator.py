# honest: errors are raised inside lambdas by throwing a ValueError into an empty generator
"""Everything is an expression."""

import math

import torch
import torch.nn.functional as F

fail = lambda text: (_ for _ in ()).throw(ValueError(text))  # noqa: E731

copy_logits = lambda input_ids, vocab_size, scale: (  # noqa: E731
    fail(f"input_ids: {[i for i in input_ids.flatten().tolist() if i < 0 or i >= vocab_size]}, V = {vocab_size}")
    if ((input_ids < 0) | (input_ids >= vocab_size)).any()
    else F.one_hot(input_ids, vocab_size).float() * float(scale)
)

copy_loss = lambda input_ids, targets, selected, vocab_size, scale: (  # noqa: E731
    fail(f"input_ids {input_ids.shape}, targets {targets.shape}, selected {selected.shape}")
    if not input_ids.shape == targets.shape == selected.shape
    else fail("selected: empty")
    if not selected.any()
    else F.nll_loss(
        torch.log_softmax(F.one_hot(input_ids[selected], vocab_size).double() * scale, dim=-1), targets[selected]
    ).item()
)

match_probability = lambda mask_rate, random_rate, keep_rate, n_ordinary: (  # noqa: E731
    fail(f"mask_rate: {mask_rate}")
    if not 0 <= mask_rate <= 1
    else fail(f"random_rate: {random_rate}")
    if not 0 <= random_rate <= 1
    else fail(f"keep_rate: {keep_rate}")
    if not 0 <= keep_rate <= 1
    else fail(f"mask_rate: {mask_rate}, random_rate: {random_rate}, keep_rate: {keep_rate}")
    if abs(mask_rate + random_rate + keep_rate - 1) > 1e-9
    else fail(f"n_ordinary: {n_ordinary}")
    if n_ordinary < 1
    else keep_rate + random_rate / n_ordinary
)

context_free_floor = lambda match_probability, vocab_size: (  # noqa: E731
    fail(f"match_probability: {match_probability}")
    if not 0 <= match_probability <= 1
    else fail(f"vocab_size: {vocab_size}")
    if vocab_size < 2
    else sum(-p * math.log(p) for p in (match_probability, 1 - match_probability) if p)
    + (1 - match_probability) * math.log(vocab_size - 1)
)
