import torch

from exercises.kit import MaskedBatch


def mask_tokens(input_ids, attention_mask, special_tokens_mask, *, mask_token_id, ordinary_ids, mlm_probability=0.15,
                mask_rate=0.8, random_rate=0.1, ignore_index=-100, generator=None):
    if input_ids.ndim != 2 or not (input_ids.shape == attention_mask.shape == special_tokens_mask.shape):
        raise ValueError("input_ids, attention_mask, special_tokens_mask: three (m, T) tensors are needed")
    if not 0 < mlm_probability <= 1:
        raise ValueError(f"mlm_probability = {mlm_probability}")
    if not mask_rate >= 0:
        raise ValueError(f"mask_rate = {mask_rate}")
    if not random_rate >= 0:
        raise ValueError(f"random_rate = {random_rate}")
    if mask_rate + random_rate > 1 + 1e-9:
        raise ValueError(f"mask_rate = {mask_rate} and random_rate = {random_rate} are more than 1")
    if random_rate > 0 and len(ordinary_ids) == 0:
        raise ValueError(f"ordinary_ids is empty, random_rate = {random_rate}")
    candidates = (attention_mask == 1) & (special_tokens_mask == 0)
    if not candidates.any():
        raise ValueError("attention_mask and special_tokens_mask leave no candidate")

    where = input_ids.device if generator is None else generator.device

    def uniform():
        return torch.rand(input_ids.shape, generator=generator, device=where).to(input_ids.device)

    selected = (uniform() < mlm_probability) & candidates
    for row in range(len(input_ids)):
        places = candidates[row].nonzero().flatten()
        if len(places) > 0 and not selected[row].any():
            pick = torch.randint(len(places), (1,), generator=generator, device=where).item()
            selected[row, places[pick]] = True

    labels = torch.where(selected, input_ids, ignore_index)
    dice = uniform()
    masked = selected & (dice < mask_rate)
    random = selected & ~masked & (uniform() < random_rate)  # 10% of the 20% that are left
    new_ids = input_ids.clone()
    new_ids[masked] = mask_token_id
    if random.any():
        pick = torch.randint(len(ordinary_ids), (int(random.sum()),), generator=generator, device=where)
        new_ids[random] = ordinary_ids.to(input_ids.device)[pick.to(input_ids.device)]
    return MaskedBatch(new_ids, labels, attention_mask, selected)


def collate_mlm(examples, vocabulary, *, mlm_probability=0.15, ignore_index=-100, generator=None):
    if len(examples) == 0:
        raise ValueError("examples is empty")
    longest = max(len(e) for e in examples)
    input_ids = torch.full((len(examples), longest), vocabulary.pad_id, device="cpu")
    attention_mask = torch.zeros((len(examples), longest), dtype=torch.long, device="cpu")
    for row, example in enumerate(examples):
        if len(example) == 0:
            raise ValueError(f"examples: number {row} is empty")
        for i in example:
            if not 0 <= i < vocabulary.size:
                raise ValueError(f"examples: {i} is not in the vocabulary")
        input_ids[row, : len(example)] = torch.tensor(example, device="cpu")
        attention_mask[row, : len(example)] = 1
    special = torch.isin(input_ids, vocabulary.special_ids).long()
    return mask_tokens(input_ids, attention_mask, special, mask_token_id=vocabulary.mask_id,
                       ordinary_ids=vocabulary.ordinary_ids, mlm_probability=mlm_probability,
                       ignore_index=ignore_index, generator=generator)
