package main

import (
	"github.com/awslabs/operatorpkg/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// FleetNodeClass says what machines of the fleet are started with. A machine with another image has drifted.
type FleetNodeClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              FleetNodeClassSpec   `json:"spec,omitempty"`
	Status            FleetNodeClassStatus `json:"status,omitempty"`
}

// FleetNodeClassSpec is what the owner of a cluster writes.
type FleetNodeClassSpec struct {
	Image string `json:"image,omitempty"`
}

// FleetNodeClassStatus has the conditions that Karpenter asks for.
type FleetNodeClassStatus struct {
	Conditions []status.Condition `json:"conditions,omitempty"`
}

// FleetNodeClassList is a list of them.
type FleetNodeClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []FleetNodeClass `json:"items"`
}

func init() {
	version := schema.GroupVersion{Group: "tests.hera-specon.io", Version: "v1alpha1"}
	metav1.AddToGroupVersion(scheme.Scheme, version)
	scheme.Scheme.AddKnownTypes(version, &FleetNodeClass{}, &FleetNodeClassList{})
}

func (in *FleetNodeClass) StatusConditions(options ...status.ForOption) status.ConditionSet {
	return status.NewReadyConditions().For(in, options...)
}

func (in *FleetNodeClass) GetConditions() []status.Condition { return in.Status.Conditions }

func (in *FleetNodeClass) SetConditions(conditions []status.Condition) {
	in.Status.Conditions = conditions
}

func (in *FleetNodeClass) DeepCopyObject() runtime.Object {
	return in.copied()
}

func (in *FleetNodeClass) copied() *FleetNodeClass {
	out := &FleetNodeClass{TypeMeta: in.TypeMeta, Spec: in.Spec}
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	for i := range in.Status.Conditions {
		out.Status.Conditions = append(out.Status.Conditions, *in.Status.Conditions[i].DeepCopy())
	}
	return out
}

func (in *FleetNodeClassList) DeepCopyObject() runtime.Object {
	out := &FleetNodeClassList{TypeMeta: in.TypeMeta}
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range in.Items {
		out.Items = append(out.Items, *in.Items[i].copied())
	}
	return out
}
