"""The given types: what they hold and what they refuse."""

import subprocess
import sys

import pytest
import torch

from exercises.kit import Example, MaskedBatch, Splits, Vocabulary

VOCABULARY = Vocabulary(size=9, pad_id=3, cls_id=8, sep_id=1, mask_id=5, unk_id=4)


def test_special_ids_come_in_the_order_of_the_fields():
    assert VOCABULARY.special_ids.tolist() == [3, 8, 1, 5, 4]
    assert VOCABULARY.special_ids.dtype == torch.int64


def test_ordinary_ids_are_all_others_and_0_may_be_one():
    assert VOCABULARY.ordinary_ids.tolist() == [0, 2, 6, 7]
    assert VOCABULARY.ordinary_ids.dtype == torch.int64


@pytest.mark.parametrize("change", [{"mask_id": 9}, {"pad_id": -1}, {"unk_id": 8}], ids=str)
def test_impossible_special_ids_are_refused_with_their_name(change):
    vocabulary = VOCABULARY._replace(**change)
    (name, value), *_ = change.items()
    for read in (lambda: vocabulary.special_ids, lambda: vocabulary.ordinary_ids):
        with pytest.raises(ValueError, match=f"{name}={value}"):
            read()


def test_the_default_device_does_not_move_the_ids():
    with torch.device("meta"):
        assert VOCABULARY.special_ids.device.type == VOCABULARY.ordinary_ids.device.type == "cpu"


def test_fields_are_those_of_the_contract():
    assert Vocabulary._fields == ("size", "pad_id", "cls_id", "sep_id", "mask_id", "unk_id")
    assert MaskedBatch._fields == ("input_ids", "labels", "attention_mask", "selected")
    assert Example._fields == ("input_ids", "label")
    assert Splits._fields == ("train", "validation", "test")


def test_the_kit_needs_nothing_of_the_grader():
    code = (
        "import sys, exercises.kit\n"
        "print(sorted(m for m in sys.modules if m.split('.')[0] in ('autograder', 'solutions', 'transformers')))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
