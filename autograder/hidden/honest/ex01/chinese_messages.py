# honest: error messages and comments in Chinese
"""练习一：输入表示。"""

import numpy as np


def embedding_sum(token, segment, position):
    """三个形状相同的数组逐元素相加。"""
    if token.shape != segment.shape:
        raise ValueError(f"segment 的形状 {segment.shape} 与 token 的形状 {token.shape} 不同")
    if token.shape != position.shape:
        raise ValueError(f"position 的形状 {position.shape} 与 token 的形状 {token.shape} 不同")
    return token + segment + position


def input_embeddings(input_ids, token_type_ids, token_table, segment_table, position_table):
    """查三张表并求和，返回 (m, T, d)。"""
    if input_ids.ndim != 2:
        raise ValueError(f"input_ids 必须是二维数组，现在是 {input_ids.ndim} 维")
    if token_type_ids.shape != input_ids.shape:
        raise ValueError(f"token_type_ids 的形状 {token_type_ids.shape} 与 input_ids 的形状 {input_ids.shape} 不同")
    宽度 = [表.shape[1] for 表 in (token_table, segment_table, position_table)]
    if len(set(宽度)) > 1:
        raise ValueError(f"token_table、segment_table、position_table 的宽度不一致：{宽度}")
    长度 = input_ids.shape[1]
    if 长度 > len(position_table):
        raise ValueError(f"input_ids 的长度 {长度} 超过 position_table 的行数 {len(position_table)}")
    for 名称, 编号, 行数 in (
        ("input_ids", input_ids, len(token_table)),
        ("token_type_ids", token_type_ids, len(segment_table)),
    ):
        越界 = (编号 < 0) | (编号 >= 行数)
        if 越界.any():
            raise ValueError(f"{名称} 中的 {编号[越界][0]} 超出范围 [0, {行数})")
    return token_table[input_ids] + segment_table[token_type_ids] + position_table[:长度]


def another_decomposition(token, segment, position):
    """把一个常数从一个向量移到另一个向量，和不变。"""
    if not token.shape == segment.shape == position.shape:
        raise ValueError(f"token、segment、position 的形状必须相同：{token.shape}、{segment.shape}、{position.shape}")
    常数 = 10.0
    return token.astype(np.float64) - 常数, segment.astype(np.float64), position.astype(np.float64) + 常数
