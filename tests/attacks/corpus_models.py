"""Hostile submissions for exercises 6 to 10: changing models, lent functions abused, tests that tell who asks."""

from __future__ import annotations

import textwrap

from tests.attacks.corpus import Attack

TARGETS = {
    6: "def set_trainable(*a, **k): return answer(*a, **k)\n"
    "def parameter_groups(*a, **k): return answer(*a, **k)\n"
    "def fine_tune(*a, **k): return answer(*a, **k)\n",
    8: "def bag_of_words(*a, **k): return answer(*a, **k)\ndef compare_baselines(*a, **k): return answer(*a, **k)\n",
    9: "def add_lora(*a, **k): return answer(*a, **k)\ndef merge_lora(*a, **k): return answer(*a, **k)\n"
    "def compare_transfer(*a, **k): return answer(*a, **k)\n"
    "class LoRALinear(torch.nn.Module):\n    def __init__(self, *a, **k): answer(*a, **k)\n",
    10: "def truncate_and_pad(*a, **k): return answer(*a, **k)\ndef padding_report(*a, **k): return answer(*a, **k)\n"
    "def errors_by_length(*a, **k): return answer(*a, **k)\ndef compare_lengths(*a, **k): return answer(*a, **k)\n",
}
PRELUDE = """
import gc, os, random, sys, threading, time
import torch
from exercises import kit
gc.unfreeze()
codec, frames = sys.modules["autograder.wire.codec"], sys.modules["autograder.wire.frames"]
workers = sys.modules["autograder.sandbox.worker"]
def worker(): return next(o for o in gc.get_objects() if type(o) is workers._Worker)
VOCABULARY = kit.Vocabulary(size=40, pad_id=3, cls_id=38, sep_id=1, mask_id=5, unk_id=4)
def everything(impl):
    ids, ones = torch.full((2, 9), 7), torch.ones(2, 9, dtype=torch.long)
    settings = {"mask_token_id": 5, "ordinary_ids": VOCABULARY.ordinary_ids}
    return (impl.mask_tokens(ids, ones, 0 * ones, **settings), impl.collate_mlm([[38, 7, 8, 1], [7]], VOCABULARY),
            impl.predict(ids, ones), impl.mlm_loss(torch.zeros(1, 2, 3), torch.zeros(1, 2, dtype=torch.long)))
"""


def of(exercise: int, name: str, tries: str, code: str, conduct: str | None = None) -> Attack:
    return Attack(name, tries, PRELUDE + textwrap.dedent(code) + TARGETS.get(exercise, ""), conduct, exercise)


MODELS = [
    # -- exercise 6: models, splits and functions that the grader lends
    of(
        6,
        "result_made_up",
        "returns a result that it made up, of a model that it never trained",
        """
        def answer(model, *a):
            config, epoch = a[-1], kit.EpochMetrics(1, 0.1, 0.1, 1.0)
            predict = lambda ids, mask: torch.zeros(len(ids), dtype=torch.long)
            return kit.FineTuneResult(10, 10, [epoch], 1, 1.0, 1.0, predict)
        """,
    ),
    of(
        6,
        "model_of_many_faces",
        "returns functions and models that are something else each time that they are looked at",
        """
        class Face(torch.nn.Module):
            def named_parameters(self, *a, **k):
                if os.urandom(1)[0] % 2: raise SystemExit
                return iter([])
            def __call__(self, *a, **k): return random.choice([self, torch.zeros(2), lambda: 1, None])
            def __getattr__(self, name): return Face
        def answer(*a): return random.choice([Face.__new__(Face), [Face.__new__(Face)], {"params": Face}])
        """,
    ),
    of(
        6,
        "lent_for_ever",
        "keeps the functions that the grader lent it, and calls them when the check is over, from threads too",
        """
        kept = []
        def later():
            while True:
                time.sleep(0.05)
                for f in kept:
                    try: f("test", 0)
                    except BaseException: pass
        def answer(*a):
            for o in gc.get_objects():
                if getattr(o, "__qualname__", "").endswith("_asking.<locals>.ask"): kept.append(o)
            if len(kept) < 50: threading.Thread(target=later, daemon=True).start()
            return [f("test", 0) for f in kept[:1]]
        """,
    ),
    of(
        6,
        "questions_inside_questions",
        "asks a question while another is on its way, out of a value that is being sent",
        """
        def answer(model, splits=None, *a):
            if splits is None: return None
            ask = splits.test._read
            class L(list):
                def __iter__(self): return iter([ask("test", 0)])
            kit.Example.__iter__ = L.__iter__
            threads = [threading.Thread(target=ask, args=("train", i)) for i in range(8)]
            for t in threads: t.start()
            for t in threads: t.join()
            return ask(L("test"), L())
        """,
    ),
    of(
        6,
        "journal_flooded",
        "tells the grader of events without end, each as large as a message may be",
        """
        def answer(model, *a):
            big = torch.zeros(7 * 10**6, dtype=torch.float64)
            told = getattr(model.encoder, "told", None) or (lambda *a: None)
            for _ in range(1000): told("forward", [big], big, True, True, True)
            return None
        """,
    ),
    of(
        6,
        "kit_rewritten",
        "rewrites the kit, the fixtures and the libraries below them, so that every description is a right one",
        """
        import transformers
        fixtures = sys.modules["autograder.sandbox.fixtures"]
        fixtures.find = lambda name: (lambda *a, **k: {"problem": None, "found": []})
        kit.Classifier.forward = lambda self, *a, **k: torch.zeros(2, 2)
        kit.Classifier.__eq__ = torch.nn.Module.__eq__ = lambda *a: True
        torch.optim.AdamW.step = lambda self, *a: None
        transformers.PreTrainedModel.forward = None
        def answer(*a): return None
        """,
    ),
    # -- exercise 7: who asks?
    of(
        7,
        "asks_for_ever",
        "calls the implementation without end, and passes over every exception",
        """
        def test_it(impl):
            ids = torch.ones(1, 1, dtype=torch.long)
            while True:
                try: impl.predict(ids, ids)
                except BaseException: pass
        """,
    ),
    of(
        7,
        "reads_no_answers",
        "asks for answers of many megabytes and reads them one byte at a time",
        """
        def test_it(impl):
            ids = torch.ones(1000, 1000, dtype=torch.long)
            arguments = [[torch.get_rng_state()], ids, ids, 0 * ids]
            settings = {"mask_token_id": 5, "ordinary_ids": VOCABULARY.ordinary_ids}
            for number in range(200):
                m = codec.Encoder().pack(["ask", worker()._current, number, arguments, settings])
                os.write(10, len(m).to_bytes(4, "big") + m)
            while True: time.sleep(0.9); os.read(10, 1)
        """,
    ),
    of(
        7,
        "bombs_for_the_implementation",
        "has the grader's implementations work on more than there is memory for",
        """
        def test_it(impl):
            everything(impl)
            many, none = torch.ones(3 * 10**6, 1, dtype=torch.long), torch.zeros(0, 3, dtype=torch.long)
            for call in (lambda: impl.collate_mlm([[7] * 49000] + [[7]] * 49000, VOCABULARY),
                         lambda: impl.collate_mlm([[7]], kit.Vocabulary(2**1000, 1, 2, 3, 4, 5)),
                         lambda: impl.collate_mlm([[2**1000]], VOCABULARY), lambda: impl.predict(many, many),
                         lambda: impl.mlm_loss(torch.zeros(1, 1, 7 * 10**6), many[:1]),
                         lambda: impl.predict(none, none),
                         lambda: impl.mask_tokens(many, many, many, mask_token_id=5, ordinary_ids=many[0],
                                                  mlm_probability=1e-300),
                         lambda: impl.mlm_loss(torch.zeros(1, 3 * 10**6, 1), many.T)):
                try: call()
                except Exception: pass
            assert False
        """,
    ),
    of(
        7,
        "outcome_thrown",
        "says of every test that it failed or passed, as a coin falls",
        """
        send = workers._Worker._send
        def sent(self, frame):
            if frame[0] == "tested": frame = ["tested", random.SystemRandom().choice(["failed", "passed"]), "", []]
            send(self, frame)
        workers._Worker._send = sent
        def test_it(impl): everything(impl)
        """,
    ),
    of(
        7,
        "first_runs_are_right",
        "passes as often as right implementations may come first, then fails as a coin falls",
        """
        runs = []
        def test_it(impl):
            runs.append(everything(impl))
            assert len(runs) <= 8 or random.SystemRandom().random() < 0.5
        """,
    ),
    of(
        7,
        "knows_by_manner",
        "fails unless an implementation is as fast, as large, as named and as worded as the first one",
        """
        first = []
        def manner(impl):
            started = time.perf_counter()
            everything(impl)
            took = time.perf_counter() - started
            try: impl.predict(torch.zeros(1), None)
            except BaseException as error: words = repr(error), str(error.__traceback__.tb_lasti), type(error).__mro__
            return repr(impl)[:20], [f.__name__ for f in vars(impl).values()], words, took < 1
        def test_it(impl):
            first.append(manner(impl))
            assert first[-1] == first[0] or len(first) < 9
        """,
    ),
    of(
        7,
        "plugin_of_pytest",
        "takes pytest over from inside: hooks, fixtures of the same name, thousands of names with escapes in them",
        """
        import pytest
        def pytest_runtest_makereport(item, call): call.excinfo = None
        @pytest.fixture(autouse=True, scope="session")
        def impl(): return None
        @pytest.mark.parametrize("x", range(10**4), ids=lambda x: f"\\x1b[2J::error::{x}" + "y" * 300)
        def test_it(impl, x): assert False
        pytest.main = sys.exit = lambda *a: None
        def test_exit(impl): os._exit(0)
        """,
    ),
    of(
        7,
        "tests_that_are_no_list",
        "says that it has sixty million tests",
        """
        send = workers._Worker._send
        def sent(self, frame):
            if frame[0] == "tests": frame = ["tests", torch.zeros(6 * 10**7, dtype=torch.uint8), 0, [], []]
            send(self, frame)
        workers._Worker._send = sent
        def test_it(impl): assert False
        """,
    ),
    # -- exercises 8 to 10: comparisons
    of(
        8,
        "records_made_up",
        "returns records of runs that never took place, and reads the test split to know what they should say",
        """
        def answer(splits, *a, **k):
            labels = tuple(e.label for e in splits.test)
            rest = [0.9, 0.9, 0.1, 0.1, 10**6, 10, 20, 5, 5, 4, 8, 0.9, {}, labels]
            seeds = getattr(a[-1], "seeds", (0,)) if a else (0,)
            made = [kit.RunRecord(m, s, *rest) for s in seeds for m in ("bag_of_words", "frozen", "full")]
            return made if len(a) == 2 else made[0]
        """,
    ),
    of(
        9,
        "layers_that_agree",
        "gives layers that claim to be every layer, equal everything and have a million parameters by name",
        """
        torch.nn.Linear.__eq__ = torch.nn.Module.__eq__ = lambda *a: True
        torch.nn.Linear.__hash__ = torch.nn.Module.__hash__ = lambda self: 0
        torch.allclose = torch.equal = lambda *a, **k: True
        some = torch.nn.Parameter(torch.zeros(1))
        torch.nn.Module.named_parameters = lambda self, *a, **k: (("x" * i, some) for i in range(10**6))
        def answer(*a, **k): return a[0] if a else None
        """,
    ),
    of(
        10,
        "groups_without_end",
        "returns groups and batches without end",
        """
        class Endless(list):
            def __iter__(self):
                while True: yield kit.LengthGroup(1, 2, 3, 0.5)
            def __len__(self): return 2**62
        many = [Endless([1]), [[0] * 50_000] * 2, {i: i for i in range(40_000)}, iter(int, 1)]
        def answer(*a, **k): return random.choice(many)
        """,
    ),
]
