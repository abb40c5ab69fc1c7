# honest: German messages, raised as a subclass of ValueError that builds its own text
"""Übung 1 mit eigener Fehlerklasse."""

import numpy as np


class UnpassendeEingabe(ValueError):
    """Eine Eingabe, mit der sich nicht rechnen lässt."""

    def __init__(self, name, grund):
        super().__init__(name, grund)
        self.name = name
        self.grund = grund

    def __str__(self):
        return f"Eingabe »{self.name}« ist unpassend: {self.grund}"


def _gleiche_form(token, segment, position):
    for name, feld in {"segment": segment, "position": position}.items():
        if feld.shape != token.shape:
            raise UnpassendeEingabe(name, f"Form {feld.shape} statt {token.shape}")


def embedding_sum(token, segment, position):
    _gleiche_form(token, segment, position)
    summe = np.zeros(token.shape, dtype=np.result_type(token, segment, position))
    for summand in (position, segment, token):
        summe += summand
    return summe


def input_embeddings(input_ids, token_type_ids, token_table, segment_table, position_table):
    if input_ids.ndim != 2:
        raise UnpassendeEingabe("input_ids", f"{input_ids.ndim} Achsen statt zwei")
    if input_ids.shape != token_type_ids.shape:
        raise UnpassendeEingabe("token_type_ids", f"Form {token_type_ids.shape} statt {input_ids.shape}")
    breite = token_table.shape[1]
    for name, tabelle in {"segment_table": segment_table, "position_table": position_table}.items():
        if tabelle.shape[1] != breite:
            raise UnpassendeEingabe(name, f"Breite {tabelle.shape[1]}, token_table hat {breite}")
    if input_ids.shape[1] > len(position_table):
        raise UnpassendeEingabe("input_ids", f"{input_ids.shape[1]} Token, aber nur {len(position_table)} Positionen")
    for name, nummern, zeilen in (
        ("input_ids", input_ids, len(token_table)),
        ("token_type_ids", token_type_ids, len(segment_table)),
    ):
        for nummer in (nummern.min(), nummern.max()):
            if not 0 <= nummer < zeilen:
                raise UnpassendeEingabe(name, f"die Nummer {nummer} liegt nicht in [0, {zeilen})")
    positionen = np.indices(input_ids.shape)[1]
    return embedding_sum(token_table[input_ids], segment_table[token_type_ids], position_table[positionen])


def another_decomposition(token, segment, position):
    _gleiche_form(token, segment, position)
    verschiebung = np.full_like(token, 1, dtype=np.float64)
    return token - verschiebung, segment - verschiebung, position + 2 * verschiebung
