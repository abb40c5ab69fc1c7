"""Hidden checks of exercise 5: collate_mlm.

It is judged with a right mask_tokens in the place of the submission's, so that a fault there costs nothing here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example
from hypothesis import strategies as st

from autograder.examples import settings
from autograder.hidden import cases_ex05 as cases
from autograder.hidden import expect
from autograder.hidden import statistics as chance
from autograder.hidden.cases_ex05 import CPU, allowed, first, must_be, some_target, source
from autograder.hidden.oracles import ex05 as oracle
from autograder.hidden.properties import given
from autograder.hidden.samples_ex05 import CHANGED, FATES, outside, spell
from autograder.hidden.strategies import seeds
from autograder.syllabus import EXERCISES
from autograder.wire.errors import RemoteError
from autograder.wire.proxy import Student
from autograder.wire.show import show
from exercises.kit import MaskedBatch, Vocabulary

#: Here a batch of another shape was filled up in another way.
read = partial(cases.read, other_shape="wrong-padding")
TENSORS = ("input_ids", "attention_mask", "special_tokens_mask")
#: Draws where mask_tokens is given no generator.
_spare = torch.Generator()


def right_mask_tokens(*args: Any, **kwargs: Any) -> MaskedBatch:
    """A right mask_tokens that collate_mlm may call instead of the submission's.

    It wants tensors, as the docstring says; a submission whose own mask_tokens takes more passes with its own.
    """
    names = EXERCISES[5].by_name["mask_tokens"].parameters
    given = dict(zip(names, args, strict=False)) | kwargs
    given = {name: value for name, value in given.items() if name in names}
    for name in (*TENSORS, "ordinary_ids"):
        if not isinstance(given.get(name), torch.Tensor):
            raise TypeError(f"mask_tokens takes a tensor as {name}, not {expect.kind(given.get(name))}")
    if given.get("generator") is None:  # the grader's own default generator stays as it is
        given["generator"] = _spare
    return oracle.mask_tokens(**given)


def forgiving(student: Student, check: Callable[[], None]) -> None:
    """Make a check of collate_mlm with a right mask_tokens in the place of the submission's.

    A collate_mlm that does its own masking, or that depends on more than the contract says of its mask_tokens, may pass
    with what was handed in instead.
    """
    _spare.manual_seed(5)
    try:
        with student.replacing(mask_tokens=right_mask_tokens):
            check()
        return
    except (expect.Wrong, RemoteError) as error:
        if isinstance(error, RemoteError) and error.raised.base == "NotImplementedError":
            raise
        fault = error
    before = len(student.witness("collate_mlm").moved)
    try:
        check()
    except (expect.Wrong, RemoteError):
        raise fault from None
    finally:
        student.excuse("collate_mlm", since=before)  # it may be the fault of mask_tokens


@dataclass
class Texts:
    """Examples for collate_mlm and what is known of their batch beforehand."""

    examples: list[list[int]]
    vocabulary: Vocabulary

    @cached_property
    def ids(self) -> torch.Tensor:
        return oracle.padded(self.examples, self.vocabulary)[0]

    @cached_property
    def attention(self) -> torch.Tensor:
        return oracle.padded(self.examples, self.vocabulary)[1].bool()

    @cached_property
    def candidates(self) -> torch.Tensor:
        return self.attention & (oracle.special(self.ids, self.vocabulary) == 0)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.ids.shape)

    def collated_by(self, student: Student, one: torch.Generator | None, **changes: Any) -> Any:
        examples = [list(example) for example in self.examples]
        return allowed(student.collate_mlm, examples, self.vocabulary, **changes, generator=one)


def make_texts(number: int, lengths: Sequence[int]) -> Texts:
    """Texts of these lengths, [CLS] first and [SEP] last; all special ids, [PAD] too, stand inside and at ends.

    Some end in [PAD], which is a token there all the same.  Special ids lie anywhere in the vocabulary.
    """
    rng = np.random.default_rng(number)
    size = 70_000 if number % 5 == 4 else int(rng.integers(11, 40))
    pad, cls, sep, mask, unk = (
        int(i) for i in rng.choice(np.arange(number % 2, size - number // 2 % 2), 5, replace=False)
    )
    vocabulary = Vocabulary(size, pad, cls, sep, mask, unk)
    examples = []
    for length in lengths:
        inside = rng.integers(0, size, length)
        odd = rng.random(length) < 0.2
        inside[odd] = rng.choice([pad, pad, sep, mask, unk, cls], int(odd.sum()))
        example = [int(i) for i in inside]
        example[0] = cls
        if length > 1:
            example[-1] = sep
        if length > 3 and number % 3 == 0:
            example[-2] = pad
        if length > 3 and number % 3 == 1:
            example[-2:] = sep, pad
        examples.append(example)
    longest = examples[int(np.argmax(lengths))]
    longest[1] = int(vocabulary.ordinary_ids[number % (size - 5)])
    return Texts(examples, vocabulary)


LENGTHS = st.lists(st.sampled_from([1, 2, 3, 5, 7, 11, 13]), min_size=1, max_size=7).filter(lambda each: max(each) > 2)


@given(lengths=LENGTHS, number=seeds)
@settings(max_examples=15)
@pytest.mark.worth("collate_mlm", 0.2, misconception="wrong-kind-of-batch")
def test_collate_form(student: Student, seed: int, lengths: list[int], number: int) -> None:
    """The result is a MaskedBatch of (m, T) tensors, T the longest length: int64 ids and labels, a 0/1 attention mask,
    a boolean selection."""
    made = make_texts(number, lengths)

    def check() -> None:
        one = source(seed, number)
        got = allowed(student.collate_mlm, examples=made.examples, vocabulary=made.vocabulary, generator=one)
        call = student.last
        read(got, call, made.shape, "input_ids", "labels", "attention_mask", "selected")
        must_be("input_ids", got.input_ids, [torch.int64], CPU, call)
        must_be("labels", got.labels, [torch.int64], CPU, call)
        must_be("selected", got.selected, [torch.bool], CPU, call)
        integers = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
        must_be("attention_mask", got.attention_mask, integers, CPU, call)
        some_target(got.selected, call)

    forgiving(student, check)


@pytest.mark.worth("collate_mlm", 0.2, misconception="other-random-source")
def test_collate_hands_on_the_generator(student: Student, seed: int) -> None:
    """All chance comes from the generator given: the same state gives the same batch, a second call a new one.

    A right solution fails with probability below 1e-14.
    Detected with probability above 0.999: a generator seeded again.
    """
    made = make_texts(4, [60, 50, 70])

    def result(one: torch.Generator | None, probability: float = 0.4) -> torch.Tensor:
        got = made.collated_by(student, one, mlm_probability=probability)
        fields = read(got, student.last, made.shape, "input_ids", "labels", "selected")
        some_target(fields[2], student.last)
        return torch.stack([field.long() for field in fields])

    def check() -> None:
        one, two = source(seed, 1), source(seed, 1)
        torch.rand(3, generator=one)
        two.set_state(one.get_state())
        batch, other = result(one), result(one)
        if batch[2].equal(other[2]):
            expect.wrong(f"{student.last.text}\nselected the same targets as the call before.", "same-mask-every-call")
        before, spare = len(student.witness("collate_mlm").moved), _spare.get_state()
        if not batch.equal(result(two)):
            moved = len(student.witness("collate_mlm").moved) > before or not _spare.get_state().equal(spare)
            expect.wrong(
                f"{student.last.text}\ngave another batch than a call with a generator in the same state.",
                "setting-not-handed-on" if moved else None,
            )
        if result(None)[2].equal(result(None)[2]):
            expect.wrong(f"{student.last.text}\nselected the same targets as the call before.", "same-mask-every-call")
        if result(one, 1.0)[0].equal(result(one, 1.0)[0]):
            expect.wrong(f"{student.last.text}\ncorrupted all as in the call before.", "same-mask-every-call")

    forgiving(student, check)


@given(lengths=LENGTHS, number=seeds)
@example(lengths=[7, 1031], number=5)
@settings(max_examples=20)
@pytest.mark.worth("collate_mlm", 0.45, misconception="wrong-padding")
def test_collate_pads_right_to_the_longest(student: Student, seed: int, lengths: list[int], number: int) -> None:
    """Texts are filled up with pad_id on the right, to the longest of the batch."""
    made = make_texts(number, lengths)

    def check() -> None:
        got = made.collated_by(student, source(seed, number), mlm_probability=0.5)
        call = student.last
        new, selected = read(got, call, made.shape, "input_ids", "selected")
        some_target(selected, call)
        left = [[made.vocabulary.pad_id] * (made.shape[1] - len(e)) + e for e in made.examples]
        zeros = [e + [0] * (made.shape[1] - len(e)) for e in made.examples]
        others = {"padding-on-the-left": torch.tensor(left), "padding-with-zero": torch.tensor(zeros)}
        seen = torch.where(selected, made.ids, new)
        named = [name for name, ids in others.items() if seen.equal(torch.where(selected, made.ids, ids))]
        what = "input_ids (off the targets)"
        expect.close(seen, made.ids, call, what=what, misconception=named[0] if named else "wrong-padding")

    forgiving(student, check)


@given(lengths=LENGTHS, number=seeds)
@example(lengths=[5, 7], number=3)
@settings(max_examples=20)
@pytest.mark.worth("collate_mlm", 0.45, misconception="attention-mask-off-the-texts")
def test_collate_attention_mask(student: Student, seed: int, lengths: list[int], number: int) -> None:
    """The attention mask is 1 at the tokens of each text and 0 at the padding: a pad_id inside a text is a token."""
    made = make_texts(number, lengths)

    def check() -> None:
        got = made.collated_by(student, source(seed, number))
        call = student.last
        attention, selected = read(got, call, made.shape, "attention_mask", "selected")
        if not got.attention_mask.eq(attention.to(got.attention_mask.dtype)).all():
            expect.wrong(f"attention_mask of {call.text}\nholds other values than 0 and 1: {show(got.attention_mask)}")
        some_target(selected, call)
        likely = [
            ("attention-mask-from-ids", made.ids != made.vocabulary.pad_id),
            ("attention-mask-from-ids", lambda: got.input_ids != made.vocabulary.pad_id),
            ("mask-polarity", ~made.attention),
            ("attention-mask-from-ids", made.candidates),
        ]
        expect.close(attention, made.attention, call, what="attention_mask", likely=likely)

    forgiving(student, check)


@given(lengths=LENGTHS, number=seeds)
@settings(max_examples=20)
@pytest.mark.worth("collate_mlm", 0.45, misconception="special-or-padding-selected")
def test_collate_spares_special_tokens(student: Student, seed: int, lengths: list[int], number: int) -> None:
    """Special tokens and padding are never targets, wherever they stand, and their labels are ignore_index."""
    made = make_texts(number, lengths)

    def check() -> None:
        got = made.collated_by(student, source(seed, number), mlm_probability=1.0)
        call = student.last
        labels, selected = read(got, call, made.shape, "labels", "selected")
        some_target(selected, call)
        bad = selected & ~made.candidates
        if bool(bad.any()):
            row, place = first(bad)
            names = dict(zip(made.vocabulary[1:], ("[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]"), strict=True))
            kind = names[int(made.ids[row, place])] if bool(made.attention[row, place]) else "padding"
            expect.wrong(
                f"{call.text}\nselected {kind} at [{row}, {place}]; special tokens and padding are no targets."
            )
        seen = torch.where(selected, -100, labels)
        expect.close(
            seen, torch.full_like(seen, -100), call, what="labels (off the targets)", misconception="labels-everywhere"
        )

    forgiving(student, check)


@given(lengths=LENGTHS, number=seeds, ignored=st.sampled_from([-1, -7, 1000]))
@settings(max_examples=10)
@pytest.mark.worth("collate_mlm", 0.2, misconception="setting-not-handed-on")
def test_collate_ignore_index(student: Student, seed: int, lengths: list[int], number: int, ignored: int) -> None:
    """The ignore_index is handed on: every label off the selection is the value given."""
    made = make_texts(number, lengths)

    def check() -> None:
        got = made.collated_by(student, source(seed, number), mlm_probability=0.5, ignore_index=ignored)
        call = student.last
        labels, selected = read(got, call, made.shape, "labels", "selected")
        some_target(selected, call)
        right = torch.where(selected, made.ids, ignored)
        fixed = bool((labels[labels != right] == -100).all())
        dropped = [("setting-not-handed-on", torch.where(selected, made.ids, -100))]
        named = "ignore-index-fixed" if fixed else "wrong-labels"
        expect.close(labels, right, call, what="labels", likely=dropped, misconception=named)

    forgiving(student, check)


#: Specials in the middle of the vocabulary, the first and the last id ordinary.
SCATTERED = Vocabulary(size=31, pad_id=7, cls_id=12, sep_id=3, mask_id=19, unk_id=25)


def long_texts(design: chance.Design, call: int) -> Texts:
    """Texts with so many candidates each, and 2 … 6 special tokens."""
    rng = np.random.default_rng(call)
    count = design.candidates[call // 2 % len(design.candidates)]
    examples = []
    for row in range(design.rows):
        text = rng.choice(SCATTERED.ordinary_ids.numpy(), count).tolist()
        for _ in range(row % 5):
            text.insert(int(rng.integers(len(text) + 1)), int(rng.choice(SCATTERED.special_ids.numpy())))
        examples.append([SCATTERED.cls_id, *text, SCATTERED.sep_id])
    return Texts(examples, SCATTERED)


def collated(student: Student, seed: int, design: chance.Design) -> list[tuple[Texts, torch.Tensor, torch.Tensor]]:
    """(texts, input_ids, selected) of the calls of that design."""
    one = source(seed, design.length)
    changes = {} if design.probability == 0.15 else {"mlm_probability": design.probability}
    results = []
    for call in range(design.calls):
        made = long_texts(design, call)
        got = made.collated_by(student, one, **changes)
        new, selected = read(got, student.last, made.shape, "input_ids", "selected")
        results.append((made, new, selected & made.candidates))
    return results


@pytest.mark.worth("collate_mlm", 0.2, misconception="wrong-share")
def test_collate_share(student: Student, seed: int) -> None:
    """The mlm_probability is handed on: with 1 every token that is not special is a target, and 0.15 is its default.

    A right solution fails with probability below 2e-12.
    Detected with probability above 0.999: 20% instead of 15%; 15% instead of 2%.
    """

    def check() -> None:
        made = long_texts(chance.COLLATED_ALL, 0)
        got = made.collated_by(student, source(seed, 0), mlm_probability=1.0)
        (selected,) = read(got, student.last, made.shape, "selected")
        some_target(selected, student.last)
        free = made.candidates
        missed = free & ~selected
        if bool(missed.any()):
            few = int((selected & free).sum()) < 0.4 * int(free.sum())
            ids = show(made.ids[missed].unique().tolist())
            expect.wrong(
                f"{student.last.text}\nselected {int((selected & free).sum())} of {int(free.sum())} ordinary tokens; "
                f"with mlm_probability 1 it is all. The ids left out: {ids}",
                "setting-not-handed-on" if few else "candidates-left-out",
            )
        for design in (chance.COLLATED, chance.COLLATED_FEW):
            counts = [int(k) for _, _, selected in collated(student, seed, design) for k in selected.sum(dim=1)]
            if not chance.share_fault(counts, design.per_sequence(), design.probability):
                continue
            expect.wrong(
                f"{student.last.text}\nselected {sum(counts)} of {design.total} candidates in {design.calls} calls as "
                f"this, a share of {sum(counts) / design.total:.3f} instead of {design.probability}."
            )

    forgiving(student, check)


@pytest.mark.worth("collate_mlm", 0.25, misconception="wrong-split")
def test_collate_split(student: Student, seed: int) -> None:
    """Targets become [MASK], any of vocabulary.ordinary_ids, or stay, as 80/10/10.

    A right solution fails with probability below 5e-12.
    Detected with probability above 0.999: 80/2/18; one ordinary id missing.
    """
    design = chance.COLLATED_ALL

    def check() -> None:
        results = collated(student, seed, design)
        call = student.last
        new = torch.cat([new[selected] for _, new, selected in results])
        old = torch.cat([made.ids[selected] for made, _, selected in results])
        if len(new) == 0:
            expect.wrong(f"{call.text}\nselected no token at all.", "sequence-without-target")
        ordinary = SCATTERED.ordinary_ids
        bad = (new != SCATTERED.mask_id) & ~torch.isin(new, ordinary)
        if bool(bad.any()):
            expect.wrong(
                f"{call.text}\nput the special id {int(new[bad][0])} in the place of a token; random tokens are drawn "
                f"from vocabulary.ordinary_ids.",
                "random-id-not-ordinary",
            )
        fates = (new == SCATTERED.mask_id, (new != old) & (new != SCATTERED.mask_id), new == old)
        for fate, share, name in zip(fates, chance.seen(*chance.DEFAULT_RATES, design.ordinary), FATES, strict=True):
            bounds = chance.binomial_bounds(len(new), share)
            if outside(int(fate.sum()), bounds):
                expect.wrong(
                    f"{call.text}\nOf {len(new)} targets in {design.calls} such calls, {int(fate.sum())} were {name}; "
                    f"{spell(bounds)} are likely."
                )
        changed = fates[CHANGED]
        for id_ in ordinary.tolist():
            n = int((changed & (old != id_)).sum())
            bounds = chance.binomial_bounds(n, 1 / (design.ordinary - 1), chance.ALPHA / design.ordinary)
            if outside(int((changed & (new == id_)).sum()), bounds):
                expect.wrong(
                    f"{call.text}\nOf {n} tokens that changed into another one, {int((changed & (new == id_)).sum())} "
                    f"became {id_}, an ordinary id; {spell(bounds)} are likely.",
                    "random-range",
                )

    forgiving(student, check)


def collates(student: Student, made: Texts, seed: int) -> None:
    """Make a valid call.  Fails if its labels are not the ids of the selected tokens."""
    got = made.collated_by(student, source(seed, 0), mlm_probability=0.9)
    call = student.last
    labels, selected = read(got, call, made.shape, "labels", "selected")
    some_target(selected, call)
    expect.close(labels[selected], made.ids[selected], call, what="labels[selected]", misconception="wrong-labels")


@pytest.mark.worth("collate_mlm", 0.05, misconception="bad-input-accepted")
def test_collate_refuses_no_examples(student: Student, seed: int) -> None:
    """A batch of no examples is refused with a ValueError that names `examples`."""

    def check() -> None:
        collates(student, make_texts(0, [7]), seed)
        expect.refuses(
            student.collate_mlm,
            [],
            SCATTERED,
            names=("examples", "example"),
            because="there are no examples",
            generator=source(seed, 0),
        )

    forgiving(student, check)


@pytest.mark.worth("collate_mlm", 0.1, misconception="bad-input-accepted")
def test_collate_refuses_an_empty_example(student: Student, seed: int) -> None:
    """A batch with an empty example is refused, wherever it stands."""
    good = make_texts(2, [7, 4, 9])

    def check() -> None:
        collates(student, good, seed)
        texts_ = good.examples
        batches: list[list[list[int]]] = [[[], *texts_], [*texts_, []], [texts_[0], [], texts_[1]], [[]], [[], []]]
        for bad in batches:
            expect.refuses(
                student.collate_mlm,
                bad,
                good.vocabulary,
                names=("examples", "example"),
                because=f"examples[{bad.index([])}] is empty",
                generator=source(seed, 0),
            )

    forgiving(student, check)


@pytest.mark.worth("collate_mlm", 0.25, misconception="bad-input-accepted")
def test_collate_refuses_ids_outside_the_vocabulary(student: Student, seed: int) -> None:
    """An id outside [0, vocabulary.size) is refused, and the message shows it; the first and the last id are fine."""
    good = Texts([[12, 0, 30, 8, 3], [12, 30, 3], [12, 0, 5, 6, 7, 8, 3]], SCATTERED)

    def check() -> None:
        collates(student, good, seed)
        for row, place, id_ in ((0, 2, 31), (1, 1, -1), (2, 6, 31), (2, 0, 1234), (1, 2, -100), (0, 1, -31)):
            bad = [list(example) for example in good.examples]
            bad[row][place] = id_
            expect.refuses(
                student.collate_mlm,
                bad,
                SCATTERED,
                names=("examples", "example", "vocabulary"),
                values=(id_,),
                because=f"examples[{row}] holds {id_}, outside [0, 31)",
                generator=source(seed, 0),
            )

    forgiving(student, check)


@pytest.mark.worth("collate_mlm", 0.2, misconception="input-mutated")
def test_collate_leaves_examples_alone(student: Student, seed: int) -> None:
    """Neither the lists of examples nor a global random generator is touched."""
    witness = student.witness("collate_mlm")

    def check() -> None:
        for number, lengths in enumerate(([7, 3, 5], [4, 4], [1, 9])):
            collates(student, make_texts(number, lengths), seed)
            make_texts(number, lengths).collated_by(student, source(seed, number))
        mutated = [(call, argument) for call, argument in witness.mutated if argument in {"examples", "vocabulary"}]
        if mutated:
            call, argument = mutated[0]
            expect.wrong(f"{call}\nchanged its argument `{argument}`; inputs belong to the caller.", "input-mutated")
        # Earlier calls count, too: seeding a global generator with a constant moves it only once.
        for number, (call, name) in enumerate(witness.moved):
            if number not in witness.excused and "generator=Generator(" in call:
                expect.wrong(f"{call}\nmoved the global random generator of {name}.", "global-generator")

    forgiving(student, check)
