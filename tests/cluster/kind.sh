#!/usr/bin/env bash
# A cluster of kind for the tests on Kubernetes: three nodes, Argo Workflows, and the images that the tests start.
# Needs Docker, kind, kubectl, Go and buildah; writes kind.kubeconfig (docs/how-to/run-the-cluster-tests.md).
set -euo pipefail
cd "$(dirname "$0")/../.."

PYTHON=.venv/bin/python
ARGO=$("$PYTHON" -c 'from tests.cluster.versions import ARGO; print(ARGO)')
export KUBECONFIG=$PWD/kind.kubeconfig

kind create cluster --config - --kubeconfig "$KUBECONFIG" <<END
kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
nodes: [{role: control-plane}, {role: worker}, {role: worker}, {role: worker}]
END
kubectl create namespace argo
kubectl apply --server-side --namespace argo \
  --filename "https://github.com/argoproj/argo-workflows/releases/download/$ARGO/install.yaml"
# The tests wait for many moves, and most of the time of a move is this look.
kubectl set env --namespace argo deployment/workflow-controller DEFAULT_REQUEUE_TIME=1s
"$PYTHON" -m tests.cluster build
for archive in $("$PYTHON" -m tests.cluster archives) $("$PYTHON" -m tests.cluster.images | cut -f2); do
  kind load image-archive "$archive"
done
kubectl rollout status --namespace argo deployment/workflow-controller --timeout=300s
