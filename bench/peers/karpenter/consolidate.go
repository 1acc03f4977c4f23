package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sort"
	"time"

	"github.com/awslabs/operatorpkg/status"

	kwokv1alpha1 "sigs.k8s.io/karpenter/kwok/apis/v1alpha1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
)

// command is the first thing that Karpenter's consolidation would do with a cluster.
type command struct {
	Method        string   `json:"method"`
	Decision      string   `json:"decision"`
	Nodes         []string `json:"nodes"`
	InstanceTypes []string `json:"instanceTypes"`
	Seconds       float64  `json:"seconds"`
}

// consolidate runs the multi-node method and, where that does nothing, the single-node method, as the disruption controller
// does. Budgets allow everything; the wait and the second look before a command is carried out are left out.
func consolidate(ctx context.Context, loaded *objects, offered catalogue, chosen settings) (*command, error) {
	asked, err := prepare(ctx, loaded, offered, chosen)
	if err != nil {
		return nil, err
	}
	budgets := map[string]int{}
	for _, pool := range every[*v1.NodePool](loaded) {
		if err := ready(pool); err != nil {
			return nil, err
		}
		budgets[pool.Name] = math.MaxInt32
	}
	provider := shop{types: offered}
	provisioner := provisioning.NewProvisioner(loaded, asked.recorder, provider, asked.cluster, asked.clock, nil, nil)
	queue := disruption.NewQueue(loaded, asked.recorder, asked.cluster, asked.clock, provisioner)
	shared := disruption.MakeConsolidation(asked.clock, asked.cluster, loaded, provisioner, provider, asked.recorder, queue)
	unchecked := disruption.WithValidator(believer{})
	begun := time.Now()
	for _, method := range []disruption.Method{
		disruption.NewMultiNodeConsolidation(shared, unchecked),
		disruption.NewSingleNodeConsolidation(shared, unchecked),
	} {
		candidates, err := disruption.GetCandidates(ctx, asked.cluster, loaded, asked.recorder, asked.clock, provider,
			method.ShouldDisrupt, method.Class(), queue)
		if err != nil {
			return nil, fmt.Errorf("GetCandidates: %w", err)
		}
		left := map[string]int{}
		for pool, number := range budgets {
			left[pool] = number
		}
		found, err := method.ComputeCommands(ctx, left, candidates...)
		if err != nil {
			return nil, fmt.Errorf("ComputeCommands: %w", err)
		}
		if len(found) > 0 && found[0].Decision() != disruption.NoOpDecision {
			said := told(found[0], method.ConsolidationType())
			said.Seconds = time.Since(begun).Seconds()
			return said, nil
		}
	}
	return &command{
		Decision: string(disruption.NoOpDecision), Nodes: []string{}, InstanceTypes: []string{}, Seconds: time.Since(begun).Seconds(),
	}, nil
}

func told(found disruption.Command, method string) *command {
	said := &command{Method: method, Decision: string(found.Decision()), Nodes: []string{}, InstanceTypes: []string{}}
	for _, candidate := range found.Candidates {
		said.Nodes = append(said.Nodes, candidate.Name())
	}
	sort.Strings(said.Nodes)
	for _, replacement := range found.Replacements {
		for _, instanceType := range replacement.InstanceTypeOptions {
			said.InstanceTypes = append(said.InstanceTypes, instanceType.Name)
		}
	}
	sort.Strings(said.InstanceTypes)
	return said
}

// ready: files have no status, and a pool that is not ready buys nothing. Without a setting consolidation would be off,
// where an API server would have filled in the default.
func ready(pool *v1.NodePool) error {
	if pool.Spec.Disruption.ConsolidateAfter.Duration == nil {
		return fmt.Errorf("%w: NodePool %s: spec.disruption.consolidateAfter is needed", errInput, pool.Name)
	}
	pool.StatusConditions().SetTrue(v1.ConditionTypeValidationSucceeded)
	pool.StatusConditions().SetTrue(v1.ConditionTypeNodeClassReady)
	return nil
}

// believer takes every command as it is.
type believer struct{}

func (believer) Validate(_ context.Context, found disruption.Command, _ time.Duration) (disruption.Command, error) {
	return found, nil
}

// shop sells the catalogue and does nothing else.
type shop struct{ types catalogue }

var errReadOnly = errors.New("nothing is bought or deleted here")

func (s shop) GetInstanceTypes(context.Context, *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	return s.types, nil
}

func (shop) GetSupportedNodeClasses() []status.Object {
	return []status.Object{&kwokv1alpha1.KWOKNodeClass{}}
}

func (shop) Create(context.Context, *v1.NodeClaim) (*v1.NodeClaim, error) { return nil, errReadOnly }

func (shop) Delete(context.Context, *v1.NodeClaim) error { return errReadOnly }

func (shop) Get(context.Context, string) (*v1.NodeClaim, error) { return nil, errReadOnly }

func (shop) List(context.Context) ([]*v1.NodeClaim, error) { return nil, errReadOnly }

func (shop) IsDrifted(context.Context, *v1.NodeClaim) (cloudprovider.DriftReason, error) { return "", nil }

func (shop) RepairPolicies() []cloudprovider.RepairPolicy { return nil }

func (shop) Name() string { return "kwok" }
