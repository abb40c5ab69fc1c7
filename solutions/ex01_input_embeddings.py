# %% [markdown] lang="en"
# # Exercise 1: Input representation
#
# **Goal.** Build the vectors that enter BERT's first layer: one vector for the token, one for its segment, one for its
# position, added up. Then show that the sum cannot be taken apart again.
#
# **Not the point.** Tokenising text, training the tables, and the LayerNorm and dropout that BERT applies to the sum.
#
# **Time.** About 40 minutes.

# %% [markdown] lang="zh"
# # 练习 1：输入表示
#
# **目标**：构造进入 BERT 第一层的向量。每个位置有三个向量，分别表示词元、所属的段和位置，三者相加。
# 然后证明：这个和无法再拆回原来的三个部分。
#
# **不涉及**：文本的分词、嵌入表的训练，以及 BERT 在求和之后所做的层归一化和 dropout。
#
# **用时**：约 40 分钟。

# %%
import numpy as np

# %% [markdown] lang="en"
# ## The sum of three vectors
#
# $\mathbf{x}_i = \mathbf{e}^{\text{token}}_i + \mathbf{e}^{\text{segment}}_i + \mathbf{e}^{\text{position}}_i$, all
# three in $\mathbb{R}^d$ (Devlin et al. 2019, section 3 and figure 2). NumPy would happily stretch a shape that does
# not fit. Here that is a mistake, and you say so.

# %% [markdown] lang="zh"
# ## 三个向量之和
#
# $\mathbf{x}_i = \mathbf{e}^{\text{token}}_i + \mathbf{e}^{\text{segment}}_i + \mathbf{e}^{\text{position}}_i$，
# 三项依次为词元嵌入、段嵌入和位置嵌入，都属于 $\mathbb{R}^d$（Devlin et al. 2019，第 3 节与图 2）。
# 形状不一致时，NumPy 会默默地用广播把它撑开。在这里那是错误的输入，你的代码要明确指出。


# %%
def embedding_sum(token: np.ndarray, segment: np.ndarray, position: np.ndarray) -> np.ndarray:
    """Add token, segment and position embeddings.

    token, segment, position: integer or floating arrays of one identical shape (..., d), in any memory order. Nothing
        is broadcast. None of them is changed.

    Returns an array of that shape; its dtype is `np.result_type` of the three
    (correct to 1e-9 · max(1, |sum|) in float64).

    Example: (1, 0) + (0.5, 0.5) + (-0.5, 1) = (1, 1.5).
    Source: Devlin et al. 2019, section 3, "Input/Output Representations".

    Raises:
        ValueError: the shapes differ in any way, (1, d) and (m, d) included; names token, segment or position.
    """
    ### BEGIN SOLUTION
    if not token.shape == segment.shape == position.shape:
        raise ValueError(
            f"token, segment and position must have one shape, got {token.shape}, {segment.shape}, {position.shape}"
        )
    dtype = np.result_type(token, segment, position)
    return token.astype(dtype) + segment + position
    ### END SOLUTION


# %%
if __name__ == "__main__":
    print(embedding_sum(np.array([1.0, 0.0]), np.array([0.5, 0.5]), np.array([-0.5, 1.0])))  # [1.  1.5]

# %% [markdown] lang="en"
# ## From ids to vectors
#
# Each table is a matrix whose row $i$ is the vector of id $i$. Positions need no ids: in every sequence of the batch
# they count 0, 1, 2, … An index of -1 is not an error to NumPy: it means the last row. In a vocabulary it means
# nothing.

# %% [markdown] lang="zh"
# ## 从 id 到向量
#
# 每张嵌入表都是一个矩阵，第 $i$ 行就是 id 为 $i$ 的向量。位置不需要 id：批次中每个序列的位置都从 0 数起，
# 即 0、1、2……下标 -1 对 NumPy 来说不是错误，它表示最后一行；而在词表里，它没有任何含义。


# %%
def input_embeddings(
    input_ids: np.ndarray,
    token_type_ids: np.ndarray,
    token_table: np.ndarray,
    segment_table: np.ndarray,
    position_table: np.ndarray,
) -> np.ndarray:
    """Look up and add the three embeddings of every token of a batch.

    input_ids: (m, T), ids of tokens, of any integer dtype.
    token_type_ids: (m, T), ids of segments, of any integer dtype.
    token_table: (V, d).  segment_table: (S, d).  position_table: (P, d), with P >= T: row t belongs to the t-th token
        of every sequence, counted from 0. Integer or floating.

    Returns (m, T, d); its dtype is `np.result_type` of the three tables (correct
    to 1e-9 · max(1, |sum|) in float64). No argument is changed.

    Source: Devlin et al. 2019, figure 2.

    Raises:
        ValueError: input_ids is not 2-D; token_type_ids has not the shape of input_ids (either name will do);
            the tables differ in d (names a table);
            T > P (names input_ids or position_table, and shows T or P);
            an id below 0 or not below V (names input_ids, shows such an id);
            a segment id below 0 or not below S (names token_type_ids, shows such an id).
    """
    ### BEGIN SOLUTION
    if input_ids.ndim != 2 or token_type_ids.shape != input_ids.shape:
        raise ValueError(
            f"input_ids and token_type_ids must have one shape (m, T), got {input_ids.shape}, {token_type_ids.shape}"
        )
    tables = {"token_table": token_table, "segment_table": segment_table, "position_table": position_table}
    if len({table.shape[-1] for table in tables.values()}) > 1:
        widths = ", ".join(f"{name} {table.shape[-1]}" for name, table in tables.items())
        raise ValueError(f"the tables must share their width d, got {widths}")
    length = input_ids.shape[1]
    if length > len(position_table):
        raise ValueError(f"input_ids has {length} tokens a row, but position_table only {len(position_table)} rows")
    for name, ids, table in (
        ("input_ids", input_ids, token_table),
        ("token_type_ids", token_type_ids, segment_table),
    ):
        outside = ids[(ids < 0) | (ids >= len(table))]
        if outside.size:
            raise ValueError(f"{name} holds {outside[0]}, outside [0, {len(table)})")

    dtype = np.result_type(token_table, segment_table, position_table)
    token = token_table[input_ids].astype(dtype)  # (m, T, d)
    segment = segment_table[token_type_ids]  # (m, T, d)
    position = position_table[:length]  # (T, d), the same for every sequence
    return token + segment + position  # (m, T, d)
    ### END SOLUTION


# %%
if __name__ == "__main__":
    rng = np.random.default_rng(0)
    x = input_embeddings(
        np.array([[4, 0, 2]]), np.array([[0, 0, 1]]), rng.normal(size=(7, 5)), rng.normal(size=(2, 5)), np.eye(3, 5)
    )
    print(x.shape)  # (1, 3, 5)

# %% [markdown] lang="en"
# ## The sum cannot be undone
#
# If somebody could compute the three parts from their sum, no other three parts could have the same sum. So one other
# decomposition settles the question. Give a recipe that finds one for *any* three arrays.

# %% [markdown] lang="zh"
# ## 求和不可逆
#
# 假如有人能由和算出三个部分，那么就不会有另外三个部分具有相同的和。因此，只要给出另一种分解，问题就有了定论。
# 请写出一种做法，使它对*任意*三个数组都能找到另一种分解。


# %%
def another_decomposition(
    token: np.ndarray, segment: np.ndarray, position: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find three other arrays with the same sum: proof that a sum does not determine its parts.

    token, segment, position: integer or floating arrays of one identical shape (..., d), d >= 1, with entries of
        magnitude up to 1e6. None of them is changed.

    Returns (token', segment', position'): three float64 arrays of that shape.
        - token' + segment' + position' equals token + segment + position within
          1e-9 · max(1, |token| + |segment| + |position|), entry by entry;
        - at least two of the three differ from their originals by more than 1e-3 in *every* entry.

    Raises:
        ValueError: the shapes differ in any way; names token, segment or position.
    """
    ### BEGIN SOLUTION
    if not token.shape == segment.shape == position.shape:
        raise ValueError(
            f"token, segment and position must have one shape, got {token.shape}, {segment.shape}, {position.shape}"
        )
    token, segment, position = (part.astype(np.float64) for part in (token, segment, position))
    return token + 1.0, segment - 1.0, position
    ### END SOLUTION


# %%
if __name__ == "__main__":
    parts = np.array([1.0, 0.0]), np.array([0.5, 0.5]), np.array([-0.5, 1.0])
    print(sum(parts), "=", sum(another_decomposition(*parts)))

# %% [markdown] lang="en"
# ## In writing (4 points, graded by a person)
#
# 1. Why must the token, segment and position embeddings share the same $d$?
# 2. Why can the three parts not be recovered from their sum, although the model makes good use of it?
#
# <!-- BEGIN ANSWER -->
# 1. A sum of vectors is taken entry by entry, so it exists only between vectors of the same space $\mathbb{R}^d$, and
#    the sum lies in that space again: the layers above see one width $d$, whatever was added. Vectors of different
#    widths could be concatenated, or first mapped to a common width, but that would be another model. Broadcasting
#    only makes the shapes fit: it repeats one number for many entries and has no meaning as an embedding.
# 2. For every vector $\mathbf{c}$, $(\mathbf{t}+\mathbf{c}) + (\mathbf{s}-\mathbf{c}) + \mathbf{p}$ is the same sum:
#    $3d$ unknowns, $d$ equations, so infinitely many triples fit. Nor do the sums determine the tables: adding
#    $\mathbf{c}$ to all rows of one table and taking it from all rows of another changes no input of the model. So the
#    rows of a table mean nothing by themselves; only sums do. With the tables known and fixed, a sum may happen to
#    point to one single triple of rows, because the candidates are finitely many. That is a property of those tables,
#    not of addition. The model needs no recovery: its first matrices are learned together with the tables and can read
#    out of the sum whatever directions help.
# <!-- END ANSWER -->

# %% [markdown] lang="zh"
# ## 书面回答（4 分，由教师评阅）
#
# 1. 词元嵌入、段嵌入和位置嵌入的维度 $d$ 为什么必须相同？
# 2. 模型能够很好地利用这个和，但为什么无法由它还原出三个部分？
#
# <!-- BEGIN ANSWER -->
# 1. 向量按分量相加，所以只有同一空间 $\mathbb{R}^d$ 中的向量才能相加，其和仍在该空间中：
#    无论加了几项，上面各层看到的宽度始终是 $d$。
#    宽度不同的向量可以拼接，也可以先映射到同一宽度，但那就是另一个模型了。广播只是让形状凑得上：
#    它把一个数重复用在许多分量上，作为嵌入没有意义。
# 2. 对任意向量 $\mathbf{c}$，$(\mathbf{t}+\mathbf{c}) + (\mathbf{s}-\mathbf{c}) + \mathbf{p}$ 都是同一个和：
#    未知数有 $3d$ 个，方程只有 $d$ 个，所以满足条件的三元组有无穷多个。和也不能确定嵌入表：
#    给一张表的所有行都加上 $\mathbf{c}$，再从另一张表的所有行中减去它，模型的输入丝毫不变。
#    所以单独看一张表的行没有意义，有意义的只是和。如果三张表已知且固定，一个和也许恰好只对应一组行，
#    因为候选只有有限多个；但这是那几张表的性质，不是加法的性质。模型也不需要还原：
#    它最前面的几个矩阵与嵌入表一起学习，可以从和中读出任何有用的方向。
# <!-- END ANSWER -->
