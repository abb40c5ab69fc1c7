# honest: errors of the library are caught and raised again, in Spanish, with the value at fault
"""Ejercicio 3: primero se intenta, después se explica."""

import math

import torch
import torch.nn.functional as F


def copy_logits(input_ids, vocab_size, scale):
    try:
        unos = F.one_hot(input_ids, vocab_size)
    except RuntimeError as error:
        malo = next(i for i in input_ids.flatten().tolist() if i < 0 or i >= vocab_size)
        raise ValueError(f"input_ids contiene {malo}, fuera del vocabulario [0, {vocab_size})") from error
    return unos.to(torch.float32) * float(scale)


def copy_loss(input_ids, targets, selected, vocab_size, scale):
    try:
        torch.stack([input_ids, targets, selected.long()])
    except RuntimeError as error:
        raise ValueError(
            f"formas distintas: input_ids {input_ids.shape}, targets {targets.shape}, selected {selected.shape}"
        ) from error
    aciertos = (input_ids[selected] == targets[selected]).tolist()
    acierto = math.log1p((vocab_size - 1) * math.exp(-scale))
    try:
        return acierto + scale * aciertos.count(False) / len(aciertos)
    except ZeroDivisionError:
        raise ValueError("selected no elige ninguna posición") from None


def match_probability(mask_rate, random_rate, keep_rate, n_ordinary):
    for nombre, tasa in zip(("mask_rate", "random_rate", "keep_rate"), (mask_rate, random_rate, keep_rate)):
        try:
            assert 0 <= tasa <= 1
        except AssertionError as error:
            raise ValueError(f"{nombre} = {tasa} no está entre 0 y 1") from error
    suma = mask_rate + random_rate + keep_rate
    try:
        assert abs(suma - 1) <= 1e-9
        assert n_ordinary >= 1
    except AssertionError:
        if n_ordinary < 1:
            raise ValueError(f"n_ordinary = {n_ordinary}, debe ser al menos 1") from None
        raise ValueError(f"mask_rate + random_rate + keep_rate = {suma} ({mask_rate}, {random_rate}, {keep_rate})") from None
    return keep_rate + random_rate / n_ordinary


def context_free_floor(match_probability, vocab_size):
    if not 0 <= match_probability <= 1:
        raise ValueError(f"match_probability = {match_probability} no está entre 0 y 1")
    try:
        resto = math.log(vocab_size - 1)
    except ValueError as error:
        raise ValueError(f"vocab_size = {vocab_size}, debe ser al menos 2") from error
    suelo = (1 - match_probability) * resto
    for p in (match_probability, 1 - match_probability):
        try:
            suelo -= p * math.log(p)
        except ValueError:
            continue
    return suelo
