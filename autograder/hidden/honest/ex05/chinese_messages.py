# honest: Messages and comments in Chinese.
"""动态掩码。"""

import torch

from exercises.kit import MaskedBatch


def mask_tokens(
    input_ids,
    attention_mask,
    special_tokens_mask,
    *,
    mask_token_id,
    ordinary_ids,
    mlm_probability=0.15,
    mask_rate=0.8,
    random_rate=0.1,
    ignore_index=-100,
    generator=None,
):
    """逐行选择并替换；每行至少一个目标。"""
    for name, tensor in (
        ("input_ids", input_ids),
        ("attention_mask", attention_mask),
        ("special_tokens_mask", special_tokens_mask),
    ):
        if tensor.dim() != 2:
            raise ValueError(f"{name} 应为二维，实际形状为 {tuple(tensor.shape)}")
    if attention_mask.shape != input_ids.shape:
        raise ValueError(f"attention_mask {tuple(attention_mask.shape)} 与 input_ids 的形状不一致：{tuple(input_ids.shape)}")
    if special_tokens_mask.shape != input_ids.shape:
        raise ValueError(
            f"special_tokens_mask {tuple(special_tokens_mask.shape)} 与 input_ids 的形状不一致：{tuple(input_ids.shape)}"
        )
    if not 0 < mlm_probability <= 1:
        raise ValueError(f"mlm_probability 应在 (0, 1] 内，实际为 {mlm_probability}")
    if not mask_rate >= 0:
        raise ValueError(f"mask_rate 不能为负，实际为 {mask_rate}")
    if not random_rate >= 0:
        raise ValueError(f"random_rate 不能为负，实际为 {random_rate}")
    if mask_rate + random_rate > 1 + 1e-9:
        raise ValueError(f"mask_rate {mask_rate} 与 random_rate {random_rate} 之和超过 1")
    if random_rate > 0 and len(ordinary_ids) == 0:
        raise ValueError(f"ordinary_ids 为空，而 random_rate 为 {random_rate}")
    candidates = (attention_mask == 1) & (special_tokens_mask == 0)
    if not candidates.any():
        raise ValueError("attention_mask 与 special_tokens_mask 之下，整个批次没有候选位置")
    device = input_ids.device
    corrupted = input_ids.clone()
    labels = torch.full_like(input_ids, ignore_index)
    selected = torch.zeros(input_ids.shape, dtype=torch.bool, device=device)
    for row in range(input_ids.shape[0]):
        places = candidates[row].nonzero().flatten()
        n = len(places)
        if n == 0:
            continue
        expected = mlm_probability * n
        count = int(expected)
        if torch.rand((), generator=generator, device=device).item() < expected - count:
            count += 1
        count = max(count, 1)
        order = torch.randperm(n, generator=generator, device=device)
        chosen = places[order[:count]]
        originals = input_ids[row, chosen]

        action = torch.rand(len(chosen), generator=generator, device=device)
        new = originals.clone()
        new[action < mask_rate] = mask_token_id
        replaced = (action >= mask_rate) & (action < mask_rate + random_rate)
        if replaced.any():
            pick = torch.randint(len(ordinary_ids), (int(replaced.sum()),), generator=generator, device=device)
            new[replaced] = ordinary_ids[pick]

        selected[row, chosen] = True
        labels[row, chosen] = originals
        corrupted[row, chosen] = new
    return MaskedBatch(corrupted, labels, attention_mask, selected)


def collate_mlm(examples, vocabulary, *, mlm_probability=0.15, ignore_index=-100, generator=None):
    """右侧补齐，然后掩码。"""
    if len(examples) == 0:
        raise ValueError("examples 为空")
    for number, example in enumerate(examples):
        if len(example) == 0:
            raise ValueError(f"examples[{number}] 为空")
        for token in example:
            if not 0 <= token < vocabulary.size:
                raise ValueError(f"examples[{number}] 中的编号 {token} 不在 vocabulary 内（共 {vocabulary.size} 个）")
    longest = max(len(example) for example in examples)
    input_ids = torch.full((len(examples), longest), vocabulary.pad_id, dtype=torch.int64)
    attention_mask = torch.zeros((len(examples), longest), dtype=torch.int64)
    for row, example in enumerate(examples):
        input_ids[row, : len(example)] = torch.tensor(example)
        attention_mask[row, : len(example)] = 1
    special_tokens_mask = torch.isin(input_ids, vocabulary.special_ids)
    return mask_tokens(
        input_ids,
        attention_mask,
        special_tokens_mask,
        mask_token_id=vocabulary.mask_id,
        ordinary_ids=vocabulary.ordinary_ids,
        mlm_probability=mlm_probability,
        ignore_index=ignore_index,
        generator=generator,
    )
