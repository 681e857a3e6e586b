package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"
)

const (
	idPrefix = "fleet:///"
	zone     = "here"
)

// provider starts and ends machines of the fleet as Karpenter wants it.
type provider struct {
	client client.Client
	fleet  fleet
}

func newProvider(client client.Client, fleet fleet) *provider {
	return &provider{client: client, fleet: fleet}
}

func (p *provider) Name() string { return "fleet" }

func (p *provider) GetSupportedNodeClasses() []status.Object {
	return []status.Object{&FleetNodeClass{}}
}

func (p *provider) RepairPolicies() []cloudprovider.RepairPolicy { return nil }

// Create starts a machine of the cheapest kind that suits. It registers its node by itself.
func (p *provider) Create(ctx context.Context, claim *v1.NodeClaim) (*v1.NodeClaim, error) {
	class, err := p.nodeClass(ctx, claim.Spec.NodeClassRef.Name)
	if err != nil {
		return nil, cloudprovider.NewNodeClassNotReadyError(err)
	}
	chosen, err := p.cheapest(ctx, claim)
	if err != nil {
		return nil, err
	}
	taints := append([]corev1.Taint{v1.UnregisteredNoExecuteTaint}, claim.Spec.Taints...)
	taints = append(taints, claim.Spec.StartupTaints...)
	started, err := p.fleet.start(ctx, order{
		Claim: claim.Name, Kind: chosen.Name, Image: class.Spec.Image, Taints: taints,
	})
	if errors.Is(err, errNoCapacity) {
		return nil, cloudprovider.NewInsufficientCapacityError(err)
	}
	if err != nil {
		return nil, fmt.Errorf("starting a machine for %s: %w", claim.Name, err)
	}
	return described(started, chosen), nil
}

// Delete ends a machine. It is gone when the fleet has answered, and Karpenter need not ask again.
func (p *provider) Delete(ctx context.Context, claim *v1.NodeClaim) error {
	err := p.fleet.end(ctx, strings.TrimPrefix(claim.Status.ProviderID, idPrefix))
	if err == nil || errors.Is(err, errGone) {
		return cloudprovider.NewNodeClaimNotFoundError(errGone)
	}
	return err
}

func (p *provider) Get(ctx context.Context, id string) (*v1.NodeClaim, error) {
	found, err := p.fleet.machine(ctx, strings.TrimPrefix(id, idPrefix))
	if errors.Is(err, errGone) {
		return nil, cloudprovider.NewNodeClaimNotFoundError(err)
	}
	if err != nil {
		return nil, err
	}
	kinds, err := p.fleet.kinds(ctx)
	if err != nil {
		return nil, err
	}
	return described(found, named(kinds, found.Kind)), nil
}

func (p *provider) List(ctx context.Context) ([]*v1.NodeClaim, error) {
	machines, err := p.fleet.machines(ctx)
	if err != nil {
		return nil, err
	}
	kinds, err := p.fleet.kinds(ctx)
	if err != nil {
		return nil, err
	}
	claims := make([]*v1.NodeClaim, 0, len(machines))
	for _, found := range machines {
		claims = append(claims, described(found, named(kinds, found.Kind)))
	}
	return claims, nil
}

func (p *provider) GetInstanceTypes(ctx context.Context, _ *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	kinds, err := p.fleet.kinds(ctx)
	if err != nil {
		return nil, err
	}
	offered := make([]*cloudprovider.InstanceType, 0, len(kinds))
	for _, one := range kinds {
		offered = append(offered, instanceType(one))
	}
	return offered, nil
}

// IsDrifted tells of machines that were started with another image than their class names now.
func (p *provider) IsDrifted(ctx context.Context, claim *v1.NodeClaim) (cloudprovider.DriftReason, error) {
	class, err := p.nodeClass(ctx, claim.Spec.NodeClassRef.Name)
	if err != nil {
		return "", client.IgnoreNotFound(err)
	}
	found, err := p.fleet.machine(ctx, strings.TrimPrefix(claim.Status.ProviderID, idPrefix))
	if errors.Is(err, errGone) {
		return "", cloudprovider.NewNodeClaimNotFoundError(err)
	}
	if err != nil || found.Image == class.Spec.Image {
		return "", err
	}
	return "ImageDrift", nil
}

func (p *provider) nodeClass(ctx context.Context, name string) (*FleetNodeClass, error) {
	found := &FleetNodeClass{}
	return found, p.client.Get(ctx, types.NamespacedName{Name: name}, found)
}

func (p *provider) cheapest(ctx context.Context, claim *v1.NodeClaim) (kind, error) {
	kinds, err := p.fleet.kinds(ctx)
	if err != nil {
		return kind{}, err
	}
	wanted := scheduling.NewNodeSelectorRequirementsWithMinValues(claim.Spec.Requirements...)
	var chosen *kind
	for i := range kinds {
		offer := instanceType(kinds[i])
		suits := wanted.IsCompatible(offer.Requirements, scheduling.AllowUndefinedWellKnownLabels)
		if suits && (chosen == nil || kinds[i].Price < chosen.Price) {
			chosen = &kinds[i]
		}
	}
	if chosen == nil {
		return kind{}, cloudprovider.NewInsufficientCapacityError(errNoCapacity)
	}
	return *chosen, nil
}

func named(kinds []kind, name string) kind {
	for _, one := range kinds {
		if one.Name == name {
			return one
		}
	}
	return kind{Name: name}
}

// described is a machine as Karpenter keeps it. Karpenter copies the labels to the node.
func described(found machine, of kind) *v1.NodeClaim {
	return &v1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: found.Claim, Labels: labels(instanceType(of))},
		Status: v1.NodeClaimStatus{
			ProviderID:  idPrefix + found.ID,
			ImageID:     found.Image,
			Capacity:    of.Capacity,
			Allocatable: instanceType(of).Allocatable(),
		},
	}
}

func instanceType(of kind) *cloudprovider.InstanceType {
	offered := scheduling.NewRequirements(
		scheduling.NewRequirement(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, zone),
		scheduling.NewRequirement(v1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, of.CapacityType),
	)
	requirements := scheduling.NewRequirements(
		scheduling.NewRequirement(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpIn, of.Name),
		scheduling.NewRequirement(corev1.LabelArchStable, corev1.NodeSelectorOpIn, "amd64"),
		scheduling.NewRequirement(corev1.LabelOSStable, corev1.NodeSelectorOpIn, "linux"),
		scheduling.NewRequirement(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, zone),
		scheduling.NewRequirement(v1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, of.CapacityType),
	)
	return &cloudprovider.InstanceType{
		Name:         of.Name,
		Requirements: requirements,
		Offerings:    cloudprovider.Offerings{{Requirements: offered, Price: of.Price, Available: true}},
		Capacity:     of.Capacity,
		Overhead:     &cloudprovider.InstanceTypeOverhead{SystemReserved: of.Reserved},
	}
}

func labels(of *cloudprovider.InstanceType) map[string]string {
	found := map[string]string{}
	for _, one := range of.Requirements {
		found[one.Key] = one.Any()
	}
	return found
}
