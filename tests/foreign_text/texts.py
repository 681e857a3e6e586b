"""Texts that no program should write, drawn by chance: a seed gives one text, always the same."""

import random
from typing import Final

MOST: Final = 2**16
"""Bytes of a text."""
_TOKENS: Final = (
    *("loss", "loss: 0.5", "loss=", "0.5", "1", "-", "+", ".", ",", "1,234", "e10", "1e", "nan", "inf", "-inf", "x10^"),
    *("epoch", "epoch 3", "step=3", "[3]", "3:", "3/7", "99%|", ": 10", " ", "  ", "\t", "\r", "\n", "\x00", "\x1b["),
    *("\x1b]", "\x1b[1;", "\x07", "|", "│", "(", ")", "[", "]", "{", "}", "<", ">", '"', "'", "\\", "\\u12", "\ud800"),
    *("tensor(", "float32(1.", ", a=()", "np.float64(", "±", "+/-", "→", "->", "=>", ":=", "None", "n/a", "true"),
    *(
        "the ",
        "INFO ",
        "a'b",
        "a.b/c@d",
        "é",
        "\u2028",
        "\U0001f600",
        "\uff19",
        "\u0663",
        "∞",
        "²",
        "9" * 30,
        "9" * 400,
    ),
    *(
        '{"key": ',
        '"value": ',
        '"step": ',
        '"timestamp": ',
        '"loss": 1',
        "}\n",
        "- ",
        "a: ",
        "&a ",
        "*a",
        "!!python/x ",
    ),
)
_LINES: Final = (
    '{"key": "loss", "value": 0.5, "step": 3, "timestamp": 1000}\n',
    '{"trial_id": "s.a", "run_name": "a", "experiment": "e", "sweep_id": null, "parent_run_id": null, "params": {}}',
    '{"run_id": "a", "has_params": true}',
    '{"status": "FINISHED", "timestamp": 1, "told": false}',
    '{"attempt": "1", "rank": 0, "pid": 1, "started": 1, "doing": "training"}',
    "epoch  loss  acc\n1      0.5   0.25\n2      0.4   0.3\n",
    "Epoch 3/10 - loss: 0.31 - val_loss: 1.2e-3\n",
    '["a", "b"]',
)


def text_of(seed: str) -> bytes:
    """Return the text of ``seed``: few bytes to ``MOST`` of them."""
    chance = random.Random(seed)  # noqa: S311 - draws cases
    text = b"".join(_part(chance) for _ in range(chance.randint(1, 6)))[: chance.choice([200, 5_000, MOST])]
    for _ in range(chance.choice([0, 0, 1, 5])):
        at = chance.randrange(len(text) + 1)
        text = text[:at] + chance.randbytes(chance.randint(1, 4)) + text[at + chance.randint(0, 4) :]
    return text


def _part(chance: random.Random) -> bytes:
    kind = chance.choice(["one", "few", "line", "nested", "bytes", "mix"])
    often = chance.choice([1, 10, 300, MOST])
    if kind == "line":
        return _bytes(chance.choice(_LINES)) * min(often, 300)
    if kind == "nested":
        opens, closes = chance.choice([("[", "]"), ('{"a":', "}"), ("a: ", ""), ("(", ")"), ("- ", "")])
        return _bytes(opens * min(often, 20_000) + chance.choice(["1", "", '"']) + closes * min(often, 20_000))
    if kind == "bytes":
        return chance.randbytes(min(often, 5_000))
    tokens = chance.choices(_TOKENS, k=1 if kind == "one" else chance.randint(2, 5))
    if kind == "mix":
        return _bytes("".join(chance.choices(tokens, k=min(often, 10_000))))
    whole = _bytes("".join(tokens))
    return whole * min(often, MOST // len(whole) + 1)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
