"""The jobs in PyTorch."""
