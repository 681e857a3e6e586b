"""A training job that knows MLflow and nothing of this project."""

import argparse
import time

import mlflow


def main() -> None:
    """Descend."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, required=True)
    parser.add_argument("--steps", type=int, required=True)
    args, _ = parser.parse_known_args()
    x = 1.0
    with mlflow.start_run():
        for step in range(args.steps):
            x -= 2 * args.lr * x
            mlflow.log_metric("loss", x * x, step=step)
            time.sleep(0.02)


if __name__ == "__main__":
    main()
