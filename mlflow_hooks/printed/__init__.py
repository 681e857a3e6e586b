"""Metrics from what a program prints, in whatever language it is written.

``python -m mlflow_hooks.printed -- program arguments`` runs a program and keeps what it prints of its metrics, as the
hooks keep what a script logs:

- ``form`` says what the lines look like, in one variable of the environment; ``named`` is the form that needs none,
  with ``pairs`` of a name and a value, ``tables``, and the ``steps`` that they tell.
- ``lines`` cleans what is printed, and ``numbers`` says what a number is, for every form.
- ``reader`` finds the values in what was printed.
- ``program`` runs the program, passes on what it prints and the signals that it is to get.
- ``attempt`` keeps the values in the trial's journal, and so in MLflow.
- ``command`` puts all this before a program's command, and takes it away again.
- ``carried`` brings a Python into the pod of an image that has none.
"""
