# fault: The setting is reported as lr.
# function: compare_baselines
# check: test_one_record_a_seed_and_method
# misconception: setting-not-reported
"""Bag of words, frozen encoder, full fine-tuning."""

import numpy as np
from sklearn.linear_model import LogisticRegression

from exercises.kit import Meter, RunRecord, fit, parameter_counts, predict


def features(examples, vocab_size):
    """(n, V): how often each id occurs in each text."""
    table = np.zeros((len(examples), vocab_size))
    for row, example in enumerate(examples):
        for i in example.input_ids:
            table[row, i] += 1
    return table


def labels_of(examples):
    return np.array([example.label for example in examples])


def accuracy_of(guesses, labels):
    return float(np.mean(np.asarray(guesses) == labels))


def f1_of(guesses, labels):
    guesses = np.asarray(guesses)
    hits = int(np.sum((guesses == 1) & (labels == 1)))
    misses = int(np.sum(guesses != labels))
    return 2 * hits / (2 * hits + misses) if hits + misses else 0.0


def bag_of_words(splits, seed, settings, vocab_size):
    """Counts of ids, logistic regression, C chosen on the validation split."""
    if not settings:
        raise ValueError("settings is empty")
    train, validation = list(splits.train), list(splits.validation)
    for example in train:
        for i in example.input_ids:
            if i < 0 or i >= vocab_size:
                raise ValueError(f"id {i} in splits.train is not below vocab_size {vocab_size}")
    x, y = features(train, vocab_size), labels_of(train)
    LogisticRegression().fit(x[:, :2] + y[:, None], y)
    best = None
    for c in settings:
        model = LogisticRegression(C=c, max_iter=500, random_state=seed)
        with Meter() as fitting:
            model.fit(x, y)
        score = accuracy_of(model.predict(features(validation, vocab_size)), labels_of(validation))
        if best is None or score > best["score"]:
            best = {"score": score, "c": c, "model": model, "meter": fitting}
    test = list(splits.test)
    with Meter() as predicting:
        guesses = best["model"].predict(features(test, vocab_size))
    truth = labels_of(test)
    return RunRecord(
        method="bag_of_words",
        seed=seed,
        accuracy=accuracy_of(guesses, truth),
        f1=f1_of(guesses, truth),
        train_seconds=best["meter"].seconds,
        predict_seconds=predicting.seconds,
        peak_memory_bytes=best["meter"].peak_memory_bytes,
        trainable_parameters=vocab_size + 1,
        total_parameters=vocab_size + 1,
        encoder_forward_calls=0,
        encoder_backward_calls=0,
        updates=0,
        examples_per_update=0,
        validation_score=best["score"],
        chosen_hyperparameters={"C": best["c"]},
        test_predictions=[int(k) for k in guesses],
    )


def compare_baselines(splits, make_model, config):
    """The three methods with every seed."""
    numbers = {len(config.settings.get(name, ())) for name in ("bag_of_words", "frozen", "full")}
    if len(numbers) != 1 or 0 in numbers:
        raise ValueError(f"config.settings is unequal: {dict(config.settings)}")
    train, validation = list(splits.train), list(splits.validation)
    warm_up(make_model(config.seeds[0]), train, config)
    records = []
    for seed in config.seeds:
        records.append(bag_of_words(splits, seed, config.settings["bag_of_words"], config.vocab_size))
        for method in ("frozen", "full"):
            records.append(neural(method, seed, train, validation, splits, make_model, config))
    return records


def warm_up(model, train, config):
    fit(model, train, learning_rate=1e-3, updates=1, batch_size=2, seed=0, device=config.device, pad_id=config.pad_id)
    predict(model, train[:2], device=config.device, pad_id=config.pad_id)


def prepared(model, method):
    """Settle what learns."""
    for parameter in model.encoder.parameters():
        parameter.requires_grad = method == "full"
    return model


def trained(model, train, learning_rate, seed, config):
    """Train in place; returns the meter."""
    with Meter(model.encoder, config.device) as meter:
        fit(
            model,
            train,
            learning_rate=learning_rate,
            updates=config.updates,
            batch_size=config.batch_size,
            seed=seed,
            weight_decay=config.weight_decay,
            pad_id=config.pad_id,
            device=config.device,
        )
    return meter


def classes(model, examples, config):
    return predict(model, examples, pad_id=config.pad_id, device=config.device)


def neural(method, seed, train, validation, splits, make_model, config):
    """One record of a method with an encoder."""
    tried = []
    for learning_rate in config.settings[method]:
        model = prepared(make_model(seed), method)
        counted = parameter_counts(model)
        meter = trained(model, train, learning_rate, seed, config)
        score = accuracy_of(classes(model, validation, config), labels_of(validation))
        tried.append((score, learning_rate, model, meter, counted))
    best = max(tried, key=lambda entry: entry[0])
    score, learning_rate, model, training, counted = best
    test = list(splits.test)
    with Meter(model.encoder, config.device) as testing:
        guesses = classes(model, test, config)
    truth = labels_of(test)
    return RunRecord(
        method=method,
        seed=seed,
        accuracy=accuracy_of(guesses, truth),
        f1=f1_of(guesses, truth),
        train_seconds=training.seconds,
        predict_seconds=testing.seconds,
        peak_memory_bytes=training.peak_memory_bytes,
        trainable_parameters=counted[0],
        total_parameters=counted[1],
        encoder_forward_calls=training.forward_calls + testing.forward_calls,
        encoder_backward_calls=training.backward_calls,
        updates=config.updates,
        examples_per_update=config.batch_size,
        validation_score=score,
        chosen_hyperparameters={"lr": learning_rate},
        test_predictions=guesses,
    )
