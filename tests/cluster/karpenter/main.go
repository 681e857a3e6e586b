// Karpenter's core, unchanged, over the machines of the test cluster.
//
// FLEET is the address of the server that starts and ends those machines (tests/cluster/fleet.py).
package main

import (
	"os"

	"sigs.k8s.io/karpenter/pkg/cloudprovider/overlay"
	"sigs.k8s.io/karpenter/pkg/controllers"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/operator"
)

func main() {
	ctx, op := operator.NewOperator()
	machines := newProvider(op.GetClient(), fleet{address: os.Getenv("FLEET")})
	provider := overlay.Decorate(machines, op.GetClient(), op.InstanceTypeStore)
	cluster := state.NewCluster(op.Clock, op.GetClient(), provider)
	op.WithControllers(ctx, controllers.NewControllers(
		ctx, op.Manager, op.Clock, op.GetClient(), op.EventRecorder, provider, machines, cluster, op.InstanceTypeStore,
	)...).Start(ctx)
}
