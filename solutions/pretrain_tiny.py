"""Pretrain the tiny encoder of the exercises with the masked-language-model code of exercises 2 and 5.

    python -m solutions.pretrain_tiny --out DIR

Writes a checkpoint folder (as `save_pretrained` does), the curve of the run and its probe accuracy.  One CPU core takes
a few minutes.  The committed checkpoint, `exercises/kit/data/tiny`, is what this command writes; see
docs/results/pretraining.md.
"""
