"""The Argo world: trials are pods of an Argo workflow on Kubernetes."""
