module hera-specon.io/tests/kueue

go 1.26.0

require sigs.k8s.io/kueue v0.17.0

tool sigs.k8s.io/kueue/cmd/kueue
