import collections, math
import torch

print("loading exercise 4")

BertShapes = collections.namedtuple("BertShapes", "input_ids attention_mask encoder_output query_per_head "
    "attention_scores logits score_elements score_bytes classifier_parameters")


def bert_shapes(batch_size, sequence_length, hidden_size, num_heads, num_labels, bytes_per_element=4):
    given = dict(batch_size=batch_size, sequence_length=sequence_length, hidden_size=hidden_size,
                 num_heads=num_heads, num_labels=num_labels, bytes_per_element=bytes_per_element)
    for n, v in given.items():
        if isinstance(v, bool) or not isinstance(v, int) or v <= 0: raise ValueError("参数 %s 必须是正整数：%r" % (n, v))
    d_head, rest = divmod(hidden_size, num_heads)
    if rest: raise ValueError("hidden_size %d 不能被 num_heads %d 整除" % (hidden_size, num_heads))
    ids = (batch_size, sequence_length)
    sizes = (batch_size, num_heads, sequence_length, sequence_length)
    count = 1
    for s in sizes: count *= s
    return BertShapes(ids, ids, ids + (hidden_size,), ids + (d_head,), sizes, (batch_size, num_labels),
                      count, count * bytes_per_element, num_labels * (hidden_size + 1))


def attention_scores(query, key):
    if query.size(-1) != key.size(-1):
        raise ValueError(f"query 与 key 的最后一维不同：{query.size(-1)} / {key.size(-1)}")
    return torch.einsum("...id,...jd->...ij", query * query.size(-1) ** -0.5, key)


def softmax(x):
    e = torch.exp(x - x.max())
    return e / e.sum()


def masked_softmax(scores, mask):
    if mask.dim() > scores.dim() or any(a not in (1, b) for a, b in zip(reversed(mask.shape), reversed(scores.shape))):
        raise ValueError(f"mask 的形状 {tuple(mask.shape)} 不能广播到 scores {tuple(scores.shape)}")
    for v in mask.unique().tolist():
        if v not in (0, 1):
            raise ValueError(f"mask 只能含 0 和 1，却有 {v}")
    allowed = (mask == 1).expand(scores.shape).reshape(-1, scores.shape[-1])
    rows = scores.reshape(-1, scores.shape[-1])
    out = []
    for row, keep in zip(rows, allowed):  # one row after the other, only the entries that count
        full = torch.zeros(row.shape, dtype=torch.float64, device=row.device) + 0 * torch.where(keep, row, 0).double()
        if keep.any():
            full = full.masked_scatter(keep, softmax(row[keep].double()))
        out.append(full)
    return torch.stack(out).reshape(scores.shape).to(scores.dtype)
