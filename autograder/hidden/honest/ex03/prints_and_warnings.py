# honest: prints, warns and logs at import and inside the functions
"""A talkative solution."""

import logging
import math
import warnings

import torch
from torch.nn import functional

print("exercise 3 …")
warnings.warn("just a warning", UserWarning, stacklevel=1)
log = logging.getLogger(__name__)
log.warning("logging too")


def copy_logits(input_ids, vocab_size, scale):
    print("copy_logits:", input_ids, vocab_size, scale)
    if int(input_ids.min()) < 0 or int(input_ids.max()) >= vocab_size:
        log.error("bad ids")
        raise ValueError(f"input_ids {input_ids.tolist()} do not fit a vocabulary of {vocab_size}")
    return functional.one_hot(input_ids, vocab_size) * torch.tensor(scale, dtype=torch.float32, device=input_ids.device)


def copy_loss(input_ids, targets, selected, vocab_size, scale):
    print("copy_loss:", *(tuple(x.shape) for x in (input_ids, targets, selected)))
    if input_ids.shape != targets.shape or targets.shape != selected.shape:
        warnings.warn("shapes", stacklevel=2)
        raise ValueError(f"input_ids: {input_ids.shape}; targets: {targets.shape}; selected: {selected.shape}")
    if not selected.any():
        raise ValueError(f"selected = {selected}")
    hit = input_ids[selected].eq(targets[selected]).to(torch.float64)
    loss = math.log1p((vocab_size - 1) * math.exp(-scale)) + scale * (1 - hit)
    print("->", loss.tolist())
    return float(loss.mean())


def match_probability(mask_rate, random_rate, keep_rate, n_ordinary):
    print(f"{mask_rate=} {random_rate=} {keep_rate=} {n_ordinary=}")
    for name in ("mask_rate", "random_rate", "keep_rate"):
        rate = locals()[name]
        if not 0 <= rate <= 1:
            raise ValueError(f"Bad {name}: {rate!r}")
    if abs(mask_rate + random_rate + keep_rate - 1) > 1e-9:
        raise ValueError(f"Bad sum: mask_rate {mask_rate!r}, random_rate {random_rate!r}, keep_rate {keep_rate!r}")
    if n_ordinary < 1:
        raise ValueError(f"Bad n_ordinary: {n_ordinary!r}")
    return keep_rate + random_rate / n_ordinary


def context_free_floor(match_probability, vocab_size):
    print(f"{match_probability=} {vocab_size=}")
    if not 0 <= match_probability <= 1:
        raise ValueError(f"Bad match_probability: {match_probability!r}")
    if vocab_size < 2:
        raise ValueError(f"Bad vocab_size: {vocab_size!r}")
    entropy = 0.0 if match_probability in (0, 1) else -sum(p * math.log(p) for p in (match_probability, 1 - match_probability))
    return entropy + (1 - match_probability) * math.log(vocab_size - 1)
