# honest: validation by decorators that take named conditions
"""Preconditions as decorators."""

import functools
import inspect
import math

import torch


def requires(condition, message):
    def decorate(function):
        signature = inspect.signature(function)

        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            bound = signature.bind(*args, **kwargs)
            if not condition(**bound.arguments):
                raise ValueError(message(**bound.arguments))
            return function(*args, **kwargs)

        return wrapper

    return decorate


def probability(name):
    return requires(
        lambda **arguments: 0 <= arguments[name] <= 1,
        lambda **arguments: f"{name} = {arguments[name]} is outside [0, 1]",
    )


@requires(
    lambda input_ids, vocab_size, scale: bool(((input_ids >= 0) & (input_ids < vocab_size)).all()),
    lambda input_ids, vocab_size, scale: "input_ids holds "
    + ", ".join(str(i) for i in input_ids.flatten().tolist() if not 0 <= i < vocab_size)
    + f" with vocab_size = {vocab_size}",
)
def copy_logits(input_ids, vocab_size, scale):
    logits = torch.zeros(input_ids.numel(), vocab_size, dtype=torch.float32, device=input_ids.device)
    logits[range(input_ids.numel()), input_ids.flatten()] = float(scale)
    return logits.unflatten(0, input_ids.shape)


@requires(
    lambda input_ids, targets, selected, **_: input_ids.shape == targets.shape == selected.shape,
    lambda input_ids, targets, selected, **_: "input_ids, targets, selected: "
    + ", ".join(str(tuple(tensor.shape)) for tensor in (input_ids, targets, selected)),
)
@requires(lambda selected, **_: selected.any().item(), lambda **_: "selected: no position")
def copy_loss(input_ids, targets, selected, vocab_size, scale):
    miss_rate = 1 - (input_ids[selected] == targets[selected]).double().mean().item()
    return miss_rate * scale + math.log1p((vocab_size - 1) * math.exp(-scale))


@probability("mask_rate")
@probability("random_rate")
@probability("keep_rate")
@requires(
    lambda mask_rate, random_rate, keep_rate, n_ordinary: abs(mask_rate + random_rate + keep_rate - 1) <= 1e-9,
    lambda **arguments: f"mask_rate, random_rate and keep_rate must sum to 1: {arguments}",
)
@requires(
    lambda n_ordinary, **_: n_ordinary >= 1,
    lambda n_ordinary, **_: f"n_ordinary = {n_ordinary} is below 1",
)
def match_probability(mask_rate, random_rate, keep_rate, n_ordinary):
    return random_rate / n_ordinary + keep_rate


@probability("match_probability")
@requires(lambda vocab_size, **_: vocab_size >= 2, lambda vocab_size, **_: f"vocab_size = {vocab_size} is below 2")
def context_free_floor(match_probability, vocab_size):
    if match_probability == 1:
        return 0
    guess = (1 - match_probability) * math.log((vocab_size - 1) / (1 - match_probability))
    return guess if match_probability == 0 else guess - match_probability * math.log(match_probability)
