"""Everything that talks to MLflow."""
