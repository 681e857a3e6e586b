package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	corev1 "k8s.io/api/core/v1"
)

var (
	errNoCapacity = errors.New("no machine is free")
	errGone       = errors.New("the machine is gone")
)

// kind is what a machine can be: its size, what of it pods may have, and its price per hour.
type kind struct {
	Name         string              `json:"name"`
	Capacity     corev1.ResourceList `json:"capacity"`
	Reserved     corev1.ResourceList `json:"reserved"`
	Price        float64             `json:"price"`
	CapacityType string              `json:"capacityType"`
}

// order is what a machine is to be started with.
type order struct {
	Claim  string         `json:"claim"`
	Kind   string         `json:"kind"`
	Image  string         `json:"image"`
	Taints []corev1.Taint `json:"taints"`
}

// machine is one that was started and has not been ended.
type machine struct {
	ID    string `json:"id"`
	Claim string `json:"claim"`
	Kind  string `json:"kind"`
	Image string `json:"image"`
}

// fleet is the server that starts and ends machines.
type fleet struct{ address string }

func (f fleet) kinds(ctx context.Context) ([]kind, error) {
	var found []kind
	return found, f.call(ctx, http.MethodGet, "/kinds", nil, &found)
}

func (f fleet) machines(ctx context.Context) ([]machine, error) {
	var found []machine
	return found, f.call(ctx, http.MethodGet, "/machines", nil, &found)
}

func (f fleet) machine(ctx context.Context, id string) (machine, error) {
	var found machine
	return found, f.call(ctx, http.MethodGet, "/machines/"+id, nil, &found)
}

func (f fleet) start(ctx context.Context, wanted order) (machine, error) {
	var started machine
	return started, f.call(ctx, http.MethodPost, "/machines", wanted, &started)
}

func (f fleet) end(ctx context.Context, id string) error {
	return f.call(ctx, http.MethodDelete, "/machines/"+id, nil, nil)
}

func (f fleet) call(ctx context.Context, method, path string, sent, received any) error {
	body, err := json.Marshal(sent)
	if err != nil {
		return fmt.Errorf("writing what is sent to the fleet: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, method, f.address+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("asking the fleet at %q: %w", f.address, err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("asking the fleet: %w", err)
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return errGone
	case http.StatusServiceUnavailable:
		return errNoCapacity
	default:
		said, _ := io.ReadAll(answer.Body)
		return fmt.Errorf("the fleet answers %s to %s %s: %s", answer.Status, method, path, said)
	}
	if received == nil {
		return nil
	}
	return json.NewDecoder(answer.Body).Decode(received)
}
