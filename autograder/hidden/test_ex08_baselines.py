"""Exercise 8: does the bag of words learn, choose and report as it should?"""

from __future__ import annotations

import pytest

from autograder.hidden import expect, protocol
from autograder.hidden.cases_ex08 import (
    COMMON,
    DEAF,
    FOR_ONE,
    FOR_ZERO,
    GOOD,
    NEUTRAL,
    VOCABULARY,
    WordsRun,
    count_words,
    word_texts,
)
from autograder.hidden.journal import CLS, SEP, with_turned_labels
from autograder.hidden.run_records import number, predictions
from autograder.wire.proxy import Student
from autograder.wire.show import show
from exercises.kit import Example, RunRecord, Splits

SETTINGS = (GOOD, DEAF)


def only(run: WordsRun) -> tuple[protocol.Key, RunRecord]:
    """The record, with its key; fails unless it is one of the right method and seed."""
    if not isinstance(run.returned[0], RunRecord):
        expect.wrong(f"{run.text}\nreturned {show(run.returned[0])}\nexpected a RunRecord", "no-run-records")
    record = run.returned[0]
    if record.method != "bag_of_words" or record.seed != run.config.seeds[0]:
        expect.wrong(
            f"{run.text}\nreturned a record with method={show(record.method)}, seed={show(record.seed)}\nexpected "
            f"'bag_of_words' and {run.config.seeds[0]}",
            "no-run-records",
        )
    return (record.seed, "bag_of_words", None, None), record


def must_predict(run: WordsRun, expected: list[int], because: str, misconception: str = "wrong-predictions") -> None:
    of, record = only(run)
    guesses = predictions(run, of, record)
    wrong = [index for index, (guess, right) in enumerate(zip(guesses, expected, strict=True)) if guess != right]
    if wrong:
        text = run.texts.test[wrong[0]]
        expect.wrong(
            f"{run.text}\npredicted class {guesses[wrong[0]]} for test text {wrong[0]}, "
            f"{show(text.input_ids)}\nexpected {expected[wrong[0]]}: {because}\n"
            f"({len(wrong)} of {len(expected)} differ)",
            misconception,
        )


@pytest.mark.worth("bag_of_words", 0.5, misconception="wrong-predictions")
def test_words_decide(student: Student) -> None:
    """Texts whose words tell the class are classified right, wherever they stand, in short and long texts."""
    texts = word_texts(1)
    telling = {*FOR_ONE, *FOR_ZERO}
    both_ways = []
    for text in texts.test:  # every test text twice: the telling words last, and first
        words = sorted(text.input_ids[1:-1], key=lambda i: i in telling)
        both_ways += [Example([CLS, *words, SEP], text.label), Example([CLS, *words[::-1], SEP], text.label)]
    long = [Example([CLS, *[word] * 256, SEP], label) for word, label in ((FOR_ZERO[0], 0), (FOR_ONE[0], 1))]
    run = count_words(student, texts._replace(test=[*both_ways, *long]), (GOOD,), vocab_size=30_522)
    of, record = only(run)
    guesses = predictions(run, of, record)[: len(both_ways)]
    if guesses[::2] != guesses[1::2]:
        expect.wrong(
            f"{run.text}\ngave two texts of the same words two classes: {show(guesses)}", "order-of-words-used"
        )
    must_predict(run, [text.label for text in run.texts.test], "words that only texts of that class hold")


@pytest.mark.worth("bag_of_words", 0.4, misconception="wrong-f1")
def test_scores_of_a_bag_of_words(student: Student) -> None:
    """Accuracy and F1 of class 1 are those of test_predictions on the whole test split."""
    texts = word_texts(2, test=23, share=0.4)
    spoiled = [t._replace(label=1 - t.label) if n % 4 == 0 else t for n, t in enumerate(texts.test)]
    run = count_words(student, texts._replace(test=spoiled), (GOOD,), seed=11)
    of, record = only(run)
    protocol.check_scores(run, {of: record})
    if len(set(predictions(run, of, record))) < 2:
        expect.wrong(f"{run.text}\npredicted one class for all test texts.", "wrong-predictions")


@pytest.mark.worth("bag_of_words", 0.2, misconception="undefined-f1")
def test_undefined_f1_is_zero(student: Student) -> None:
    """Without a text of class 1, and none predicted, F1 is 0.0."""
    run = count_words(student, word_texts(3, share=0.0), (GOOD,))
    of, record = only(run)
    must_predict(run, [0] * len(run.texts.test), "words that only texts of class 0 hold")
    got = number(run, of, record, "f1")
    if got != 0.0 or number(run, of, record, "accuracy") != 1.0:
        expect.wrong(
            f"{run.text}\nhas accuracy={record.accuracy}, f1={got}\nexpected 1.0 and 0.0: no test text is of class 1 "
            f"and none was predicted so",
            "undefined-f1",
        )


@pytest.mark.worth("bag_of_words", 0.5, misconception="not-the-best-setting")
def test_validation_chooses_c(student: Student) -> None:
    """The C with the highest accuracy on the validation split is used, wherever it stands among the settings."""
    texts = word_texts(4)
    majority = sum(text.label == 0 for text in texts.validation) / len(texts.validation)
    cases = [
        (texts, SETTINGS, GOOD, 1.0, "it classifies all validation texts right"),
        (texts, (DEAF, GOOD, DEAF / 10), GOOD, 1.0, "it classifies all validation texts right"),
        (
            with_turned_labels(texts, "validation"),
            SETTINGS,
            DEAF,
            1 - majority,
            f"the validation labels contradict what {GOOD:g} learns, so {DEAF:g}, which learns nothing, does better",
        ),
    ]
    for given, settings, setting, score, because in cases:
        run = count_words(student, given, settings)
        of, record = only(run)
        protocol.check_chosen(run, of, record, setting, because)
        got = number(run, of, record, "validation_score")
        if abs(got - score) > 1e-6:
            expect.wrong(
                f"{run.text}\nhas validation_score={got:.6f}\nexpected {score:.6f}, the accuracy of C={setting:g} on "
                f"the validation split",
                "splits-swapped" if setting == DEAF else "wrong-validation-score",
            )
        quiet = [0] * len(texts.test)
        expected = [text.label for text in texts.test] if setting == GOOD else quiet
        must_predict(run, expected, f"C={setting:g} was chosen", "not-the-best-setting")


@pytest.mark.worth("bag_of_words", 0.2, misconception="not-the-best-setting")
def test_first_c_of_equals(student: Student) -> None:
    """Of settings with equal scores the first one is used."""
    for settings in ((GOOD, 2 * GOOD, 4 * GOOD), (4 * GOOD, GOOD)):
        run = count_words(student, word_texts(5), settings)
        of, record = only(run)
        protocol.check_chosen(run, of, record, settings[0], "all of them classify all validation texts right")


@pytest.mark.worth("bag_of_words", 0.4, misconception="test-read-early")
def test_test_split_is_read_once_and_last(student: Student) -> None:
    """Each test text is read once, after all that was read of training and validation texts."""
    run = count_words(student, word_texts(6, test=7), (GOOD, 2 * GOOD))
    of, record = only(run)
    protocol.check_test_readings(run, {of: record}, lambda comparison, run: None)
    for part in ("train", "validation"):
        times = run.reads(part)
        if not all(times):
            index = next(n for n, read in enumerate(times) if not read)
            expect.wrong(f"{run.text}\nnever read {part} text {index}.", "splits-swapped")
        if max(max(read) for read in times) > min(min(read) for read in run.reads("test")):
            expect.wrong(
                f"{run.text}\nread a test text before it had read all {part} texts, so before the choice of C.",
                "test-read-early",
            )


@pytest.mark.worth("bag_of_words", 0.4, misconception="trained-on-more")
def test_weights_come_from_the_training_split(student: Student) -> None:
    """Nothing is learned from validation texts, neither weights nor statistics of words."""
    texts = with_turned_labels(word_texts(7, validation=200), "validation")
    run = count_words(student, texts, (GOOD,))
    labels = [text.label for text in texts.test]
    must_predict(run, labels, "the training texts say so, and the validation texts the contrary", "trained-on-more")

    # Two words of class 1 against one of class 0, all three in equally many training texts.  Seen in every validation
    # text as well, the two would seem to be words that mean little.
    first, second, other, fourth = FOR_ONE[0], FOR_ONE[1], FOR_ZERO[0], FOR_ZERO[1]
    words = enumerate((first, second, other, fourth) * 10)
    train = [Example([CLS, word, NEUTRAL[number % 9], SEP], int(word in FOR_ONE)) for number, word in words]
    common = [Example([CLS, first, second, NEUTRAL[number % 9], SEP], number % 2) for number in range(400)]
    test = [Example([CLS, first, second, other, SEP], 1), Example([CLS, other, fourth, first, SEP], 0)]
    run = count_words(student, Splits(train, common, test), (1.0,))
    must_predict(
        run,
        [1, 0],
        "two words of that class against one of the other, all of them in equally many training texts",
        "trained-on-more",
    )


@pytest.mark.worth("bag_of_words", 0.3, misconception="budget-not-reported")
def test_record_counts(student: Student) -> None:
    """The record counts V + 1 parameters, and no updates, examples or encoder calls."""
    for vocab_size in (VOCABULARY, 1009):
        run = count_words(student, word_texts(8), (GOOD,), vocab_size=vocab_size)
        of, record = only(run)
        protocol.check_parameters(run, {of: record}, {"bag_of_words": (vocab_size + 1, vocab_size + 1)})
        protocol.check_budget(run, {of: record}, lambda comparison, run: None)
        protocol.check_calls(run, {of: record}, lambda comparison, run: None)


@pytest.mark.worth("bag_of_words", 0.2, misconception="unseen-words")
def test_ids_without_a_training_text(student: Student) -> None:
    """Ids that occur only in validation or test texts, the last of the vocabulary among them, do no harm."""
    texts = word_texts(9)
    size = VOCABULARY + 30
    more = {
        part: [t._replace(input_ids=[*t.input_ids[:-1], VOCABULARY + n % 30, SEP]) for n, t in enumerate(given)]
        for part, given in (("validation", texts.validation), ("test", [*texts.test, *texts.test]))
    }
    run = count_words(student, texts._replace(**more), (GOOD,), vocab_size=size)
    must_predict(run, [text.label for text in run.texts.test], "its other words say so", "unseen-words")


@pytest.mark.worth("bag_of_words", 0.1, misconception="implausible-time")
def test_costs_of_a_bag_of_words(student: Student) -> None:
    """Times are positive and not longer than the call; the peak memory is a positive integer."""
    run = count_words(student, word_texts(10), (GOOD,))
    of, record = only(run)
    protocol.check_costs(run, {of: record}, lambda comparison, run: None)


@pytest.mark.worth("bag_of_words", 0.1, misconception="bad-input-accepted")
def test_no_settings_is_refused(student: Student) -> None:
    """Without settings there is nothing to choose: a ValueError."""
    texts = word_texts(11)
    only(count_words(student, texts, (GOOD,)))
    splits = student.fixtures.served_splits(student.lend(lambda part, i: getattr(texts, part)[i]), 40, 16, 20)
    expect.refuses(
        student.bag_of_words, splits, 0, (), VOCABULARY, names=("settings",), because="settings holds no C to try"
    )


@pytest.mark.worth("bag_of_words", 0.1, misconception="bad-input-accepted")
def test_ids_outside_the_vocabulary_are_refused(student: Student) -> None:
    """A training text with an id outside [0, vocab_size) gets a ValueError."""
    for bad in (VOCABULARY, -1):
        texts = word_texts(12)
        only(count_words(student, texts, (GOOD,)))
        first = texts.train[7]
        texts.train[7] = first._replace(input_ids=[CLS, COMMON, bad, *first.input_ids[2:]])  # type: ignore[index]  # parts are made as lists
        read = student.lend(lambda part, i, texts=texts: tuple(getattr(texts, part)[i]))
        expect.refuses(
            student.bag_of_words,
            student.fixtures.served_splits(read, 40, 16, 20),
            0,
            (GOOD,),
            VOCABULARY,
            names=("splits", "vocab_size"),
            values=(bad,),
            because=f"a text of splits.train holds {bad}, outside [0, {VOCABULARY})",
        )


@pytest.mark.worth("bag_of_words", 0.1, misconception="not-reproducible")
def test_same_bag_again(student: Student) -> None:
    """The same arguments give the same record, and no global random generator is used."""
    first, second = (count_words(student, word_texts(13), (GOOD,), seed=29) for _ in range(2))
    (of, record), (_, again) = only(first), only(second)
    protocol.check_reproducible(first, {of: record}, second, {of: again})
    must_predict(first, [text.label for text in first.texts.test], "its words say so")
    expect.unchanged(student, "bag_of_words")
