"""Train any of the thesis's models: ``python -m workflows.jobs.train --model=vae-pytorch --lr=0.003``.

A sweep over mixed models has one image and one command; which model to train is a hyperparameter.
Only the framework that the model needs is imported.
"""

import argparse
import importlib
from collections.abc import Sequence

MODELS = {
    "vae-pytorch": "workflows.jobs.pytorch.vae",
    "mnist-pytorch": "workflows.jobs.pytorch.mnist",
    "gru-pytorch": "workflows.jobs.pytorch.gru",
    "birnn-pytorch": "workflows.jobs.pytorch.birnn",
    "rnn-pytorch": "workflows.jobs.pytorch.rnn",
    "dynamic-rnn-pytorch": "workflows.jobs.pytorch.dynamic_rnn",
    "lstm-crf-pytorch": "workflows.jobs.pytorch.lstm_crf",
    "elastic-pytorch": "workflows.jobs.pytorch.elastic",
    "vae-keras": "workflows.jobs.keras.vae",
    "mnist-keras": "workflows.jobs.keras.mnist",
    "gru-keras": "workflows.jobs.keras.gru",
    "birnn-keras": "workflows.jobs.keras.birnn",
    "rnn-keras": "workflows.jobs.keras.rnn",
    "dynamic-rnn-keras": "workflows.jobs.keras.dynamic_rnn",
    "lstm-cfc-keras": "workflows.jobs.keras.lstm_cfc",
    "elastic-keras": "workflows.jobs.keras.elastic",
}
"""Module of each model, by the name that ``--model`` takes."""


def main(argv: Sequence[str] | None = None) -> None:
    """Train the model named by ``--model``; all other arguments are the job's.

    Raises:
        SystemExit: for an unknown model, with the list of those there are.
    """
    parser = argparse.ArgumentParser(description=main.__doc__, allow_abbrev=False, add_help=False)
    parser.add_argument("--model", required=True, choices=list(MODELS))
    chosen, rest = parser.parse_known_args(argv)
    importlib.import_module(MODELS[chosen.model]).main(rest)


if __name__ == "__main__":
    main()
