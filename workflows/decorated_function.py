# ruff: noqa: PLC0415 - a trial runs the function alone, so it must import what it uses
"""A sweep made of a training function: no script of one's own.

The function's source is what each trial runs, so the function imports what it uses.
"""

from hera.workflows import Resources, Workflow

from hera_specon import Sweep, choice, integer, log_uniform, minimize


@Sweep.script(
    image="hera-specon/trainer:0.2.0",
    space={"lr": log_uniform(1e-2, 1.0), "momentum": choice(0.0, 0.5, 0.9), "batch_size": integer(16, 128)},
    trials=8,
    seed=1,
    objective=minimize("loss"),
    resources=Resources(cpu_request="100m"),
    state_claim="specon-state",
)
def softmax_regression(lr: float, momentum: float, batch_size: int) -> None:
    """Classify scikit-learn's digits: learn from the first 1437, be judged by the last 360."""
    import torch
    from sklearn.datasets import load_digits

    from mlflow_hooks import trial
    from mlflow_hooks.batches import batch_indices
    from mlflow_hooks.pytorch import torch_state

    digits = load_digits()
    x, y = torch.tensor(digits.data / 16.0, dtype=torch.float32), torch.tensor(digits.target)
    model = torch.nn.Linear(64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum)
    with trial() as t:
        t.track(torch_state(model, optimizer))
        for step in t.steps(300):
            rows = batch_indices(1437, batch_size, seed=0, step=step)
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x[rows]), y[rows])
            loss.backward()  # type: ignore[no-untyped-call]  # PyTorch leaves it untyped
            optimizer.step()
            with torch.no_grad():
                t.log(loss=torch.nn.functional.cross_entropy(model(x[1437:]), y[1437:]))


with Workflow(generate_name="softmax-regression-", entrypoint="softmax-regression") as w:
    softmax_regression()
