"""Hostile: what comes back claims to be equal to everything."""


class Equal:
    shape = property(lambda self: self)
    dtype = property(lambda self: self)

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    def __getattr__(self, name):
        return lambda *arguments, **named: self

    def __bool__(self):
        return True

    def __float__(self):
        return 0.0

    def __iter__(self):
        return iter([self] * 9)

    __hash__ = __lt__ = __gt__ = __le__ = __ge__ = __sub__ = __abs__ = lambda self, *other: True


class EqualNumber(float):
    __eq__ = lambda self, other: True
    __ne__ = lambda self, other: False


def bert_shapes(batch_size, sequence_length, hidden_size, num_heads, num_labels, bytes_per_element=4):
    return Equal()


def attention_scores(query, key):
    return Equal()


def masked_softmax(scores, mask):
    return EqualNumber(0)
