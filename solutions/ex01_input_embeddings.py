# %% [markdown] lang="en"
# # Exercise 1: Input representation
#
# **Goal.** Build the vectors that enter BERT's first layer: one vector for the token, one for its segment, one for its
# position, added up. Then show that the sum cannot be taken apart again.
#
# **Not the point.** Tokenising text, training the tables, and the LayerNorm and dropout that BERT applies to the sum.
#
# **Time.** About 40 minutes.

# %%
import numpy as np

# %% [markdown] lang="en"
# ## The sum of three vectors
#
# $\mathbf{x}_i = \mathbf{e}^{\text{token}}_i + \mathbf{e}^{\text{segment}}_i + \mathbf{e}^{\text{position}}_i$, all
# three in $\mathbb{R}^d$ (Devlin et al. 2019, section 3 and figure 2). NumPy would happily stretch a shape that does
# not fit. Here that is a mistake, and you say so.


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
# Each table is a matrix whose row *i* is the vector of id *i*. Positions need no ids: in every sequence of the batch
# they count 0, 1, 2, … An index of -1 is not an error to NumPy: it means the last row. In a vocabulary it means
# nothing.


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
# 1. Why must the token, segment and position embeddings share the same *d*?
# 2. Why can the three parts not be recovered from their sum, although the model makes good use of it?
#
# <!-- BEGIN ANSWER -->
# 1. A sum of vectors is taken entry by entry, so it exists only between vectors of the same space $\mathbb{R}^d$, and
#    the sum lies in that space again: the layers above see one width *d*, whatever was added. Vectors of different
#    widths could be concatenated, or first mapped to a common width, but that would be another model. Broadcasting
#    only makes the shapes fit: it repeats one number for many entries and has no meaning as an embedding.
# 2. For every vector $\mathbf{c}$, $(\mathbf{t}+\mathbf{c}) + (\mathbf{s}-\mathbf{c}) + \mathbf{p}$ is the same sum:
#    *3d* unknowns, *d* equations, so infinitely many triples fit. Even with the tables fixed, adding **c** to all rows
#    of one and taking it from all rows of another changes no input of the model. So the rows of a table mean nothing
#    by themselves; only sums do. With the tables known and fixed, a sum may happen to point to one single triple of
#    rows, because the candidates are finitely many. That is a property of those tables, not of addition. The model
#    needs no recovery: its first matrices are learned together with the tables and can read out of the sum whatever
#    directions help.
# <!-- END ANSWER -->
