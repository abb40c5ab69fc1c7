# honest: the rule is a class; the functions are bound methods of objects
"""The copy rule as an object."""

import math

import torch


class CopyRule:
    def __init__(self, vocab_size, scale):
        self.vocab_size = vocab_size
        self.scale = float(scale)

    def __call__(self, input_ids):
        logits = input_ids.new_zeros((*input_ids.shape, self.vocab_size), dtype=torch.float32)
        logits.index_put_(tuple(torch.meshgrid(*self._ranges(input_ids), indexing="ij")) + (input_ids,), self._value(input_ids))
        return logits

    def _ranges(self, input_ids):
        return [torch.arange(n, device=input_ids.device) for n in input_ids.shape]

    def _value(self, input_ids):
        return torch.tensor(self.scale, dtype=torch.float32, device=input_ids.device)

    @property
    def cost_of_hit(self):
        return math.log1p((self.vocab_size - 1) * math.exp(-self.scale))

    @property
    def cost_of_miss(self):
        return self.scale + self.cost_of_hit


class Exercise:
    def copy_logits(self, input_ids, vocab_size, scale):
        for i in set(input_ids.flatten().tolist()):
            if i not in range(vocab_size):
                raise ValueError(f"token {i} of input_ids is outside range({vocab_size})")
        return CopyRule(vocab_size, scale)(input_ids)

    def copy_loss(self, input_ids, targets, selected, vocab_size, scale):
        shapes = {"input_ids": input_ids.shape, "targets": targets.shape, "selected": selected.shape}
        if len(set(shapes.values())) != 1:
            raise ValueError(f"shapes must be equal: {shapes}")
        rule = CopyRule(vocab_size, scale)
        n = selected.count_nonzero().item()
        if n == 0:
            raise ValueError("selected.count_nonzero() is 0")
        misses = torch.ne(input_ids, targets).logical_and(selected).count_nonzero().item()
        return rule.cost_of_hit + (rule.cost_of_miss - rule.cost_of_hit) * (misses / n)

    def match_probability(self, mask_rate, random_rate, keep_rate, n_ordinary):
        self._probability(mask_rate=mask_rate)
        self._probability(random_rate=random_rate)
        self._probability(keep_rate=keep_rate)
        if abs(mask_rate + random_rate + keep_rate - 1) > 1e-9:
            raise ValueError(f"{mask_rate=}, {random_rate=}, {keep_rate=} do not sum to 1")
        if n_ordinary < 1:
            raise ValueError(f"{n_ordinary=} is less than 1")
        return keep_rate + random_rate / n_ordinary

    def context_free_floor(self, match_probability, vocab_size):
        q = self._probability(match_probability=match_probability)
        if vocab_size < 2:
            raise ValueError(f"{vocab_size=} is less than 2")
        return sum(self._surprise(p) for p in (q, 1 - q)) + (1 - q) * math.log(vocab_size - 1)

    @staticmethod
    def _surprise(p):
        return p * math.log(1 / p) if p > 1e-300 else 0.0

    @staticmethod
    def _probability(**named):
        ((name, value),) = named.items()
        if 0 <= value <= 1:
            return value
        raise ValueError(f"{name}={value} is outside [0, 1]")


_exercise = Exercise()
copy_logits = _exercise.copy_logits
copy_loss = _exercise.copy_loss
match_probability = _exercise.match_probability
context_free_floor = _exercise.context_free_floor
