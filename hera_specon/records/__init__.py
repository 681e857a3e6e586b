"""Records of past and present runs, read back: from a run's folder, or out of MLflow."""
