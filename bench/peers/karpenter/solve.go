package main

import (
	"context"
	"fmt"
	"runtime"
	"sort"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	requirements "sigs.k8s.io/karpenter/pkg/scheduling"
	"sigs.k8s.io/karpenter/pkg/utils/daemonset"
	nodepoolutils "sigs.k8s.io/karpenter/pkg/utils/nodepool"
	podutils "sigs.k8s.io/karpenter/pkg/utils/pod"
)

// problem is what the scheduler is asked, ready to be asked any number of times.
type problem struct {
	objects   *objects
	cluster   *state.Cluster
	pools     []*v1.NodePool
	types     map[string][]*cloudprovider.InstanceType
	pods      []*corev1.Pod // what Solve gets
	counted   []*corev1.Pod // what NewTopology gets: those whose volumes could be looked up
	volumes   map[types.UID][]requirements.Requirements
	ignored   map[string]string
	poolNotes map[string]string
	recorder  events.Recorder
	clock     clock.Clock
	options   []scheduling.Options
}

func solve(ctx context.Context, loaded *objects, types catalogue, chosen settings) (*answer, error) {
	asked, err := prepare(ctx, loaded, types, chosen)
	if err != nil {
		return nil, err
	}
	var results scheduling.Results
	runs := make([]timing, 0, chosen.repeat)
	for range chosen.repeat {
		var timed timing
		if timed, results, err = asked.pass(ctx); err != nil {
			return nil, err
		}
		runs = append(runs, timed)
	}
	return report(results, asked, runs), nil
}

// prepare does what a running Karpenter has done before a pass begins: its state follows the cluster, pods are checked.
func prepare(ctx context.Context, loaded *objects, offered catalogue, chosen settings) (*problem, error) {
	p := &problem{
		objects:   loaded,
		types:     map[string][]*cloudprovider.InstanceType{},
		volumes:   map[types.UID][]requirements.Requirements{},
		ignored:   map[string]string{},
		poolNotes: map[string]string{},
		recorder:  events.NewRecorder(&record.FakeRecorder{}),
		clock:     clock.RealClock{},
		options: []scheduling.Options{
			scheduling.DisableReservedCapacityFallback,
			scheduling.NumConcurrentReconciles(chosen.workers),
			scheduling.MinValuesPolicy(options.FromContext(ctx).MinValuesPolicy),
		},
	}
	if options.FromContext(ctx).PreferencePolicy == options.PreferencePolicyIgnore {
		p.options = append(p.options, scheduling.IgnorePreferences)
	}
	if err := p.follow(ctx); err != nil {
		return nil, err
	}
	p.choosePools(ctx, offered)
	return p, p.choosePods(ctx)
}

// follow feeds Karpenter's cluster state as its informers do.
func (p *problem) follow(ctx context.Context) error {
	p.cluster = state.NewCluster(p.clock, p.objects, nil)
	for _, claim := range every[*v1.NodeClaim](p.objects) {
		p.cluster.UpdateNodeClaim(claim)
	}
	for _, node := range every[*corev1.Node](p.objects) {
		if err := p.cluster.UpdateNode(ctx, node); err != nil {
			return fmt.Errorf("node %s: %w", node.Name, err)
		}
	}
	for _, set := range every[*appsv1.DaemonSet](p.objects) {
		if err := p.cluster.UpdateDaemonSet(ctx, set); err != nil {
			return fmt.Errorf("daemonset %s: %w", set.Name, err)
		}
	}
	for _, pod := range every[*corev1.Pod](p.objects) {
		// A pod may be bound to a node that is gone; Karpenter's controller forgives that too.
		if err := p.cluster.UpdatePod(ctx, pod); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("pod %s: %w", client.ObjectKeyFromObject(pod), err)
		}
	}
	return nil
}

// choosePools leaves out what a running Karpenter leaves out: static, deleted, invalid pools and those that are not ready.
// A pool without a status is taken as ready: files have none.
func (p *problem) choosePools(ctx context.Context, offered catalogue) {
	for _, pool := range every[*v1.NodePool](p.objects) {
		switch {
		case nodepoolutils.IsStatic(pool):
			p.poolNotes[pool.Name] = "static"
		case !pool.DeletionTimestamp.IsZero():
			p.poolNotes[pool.Name] = "deleted"
		case saysNotReady(pool):
			p.poolNotes[pool.Name] = "not ready"
		default:
			if err := pool.RuntimeValidate(ctx); err != nil {
				p.poolNotes[pool.Name] = err.Error()
				continue
			}
			p.pools = append(p.pools, pool)
			p.types[pool.Name] = offered
		}
	}
	nodepoolutils.OrderByWeight(p.pools)
}

// saysNotReady looks at what was written: pool.StatusConditions() would add missing conditions as Unknown.
func saysNotReady(pool *v1.NodePool) bool {
	for _, condition := range pool.Status.Conditions {
		if condition.Type == "Ready" {
			return condition.Status != "True"
		}
	}
	return false
}

// choosePods gathers pending pods and those that must leave deleting nodes, checked as Karpenter checks them.
func (p *problem) choosePods(ctx context.Context) error {
	checker := provisioning.NewProvisioner(p.objects, p.recorder, nil, p.cluster, p.clock, nil, nil)
	for _, pod := range every[*corev1.Pod](p.objects) {
		if pod.Spec.NodeName != "" {
			continue
		}
		if !podutils.IsProvisionable(pod) {
			p.ignored[nameOf(pod)] = "not provisionable"
			continue
		}
		if err := checker.Validate(ctx, pod); err != nil {
			p.ignored[nameOf(pod)] = err.Error()
			continue
		}
		p.pods = append(p.pods, pod)
	}
	leaving, err := p.cluster.DeepCopyNodes().Deleting().CurrentlyReschedulablePods(ctx, p.objects, p.clock, p.recorder)
	if err != nil {
		return err
	}
	p.pods = append(p.pods, leaving...)
	topology := scheduling.NewVolumeTopology(p.objects)
	for _, pod := range p.pods {
		found, err := topology.GetRequirements(ctx, pod)
		if err != nil {
			// Karpenter leaves such a pod out of the counts and still tries to place it.
			continue
		}
		if len(found) > 0 {
			p.volumes[pod.UID] = found
		}
		p.counted = append(p.counted, pod)
	}
	return nil
}

// daemons gives a pod for each DaemonSet: the newest live one, else one made from its template. Fresh at every pass,
// because NewScheduler changes them.
func (p *problem) daemons() []*corev1.Pod {
	var pods []*corev1.Pod
	for _, set := range every[*appsv1.DaemonSet](p.objects) {
		pod := p.cluster.GetDaemonSetPod(set)
		if pod == nil {
			pod = daemonset.PodForDaemonSet(set.DeepCopy())
		}
		// The DaemonSet controller binds each live pod by a node affinity of its own; the template has the user's.
		template := set.Spec.Template.Spec.Affinity
		if template != nil && template.NodeAffinity != nil && template.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
			if pod.Spec.Affinity == nil {
				pod.Spec.Affinity = &corev1.Affinity{}
			}
			if pod.Spec.Affinity.NodeAffinity == nil {
				pod.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
			}
			required := template.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
			pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = required.DeepCopy()
		}
		pods = append(pods, pod)
	}
	return pods
}

// pass asks once, from the state as it was loaded. What a pass changes (nodes, topology, scheduler, daemon pods) is its own.
func (p *problem) pass(ctx context.Context) (timing, scheduling.Results, error) {
	runtime.GC()
	start := time.Now()
	nodes := p.cluster.DeepCopyNodes().Active()
	// DeepCopyNodes walks a map; a fixed order makes equal inputs give equal answers as far as Karpenter allows.
	sort.Slice(nodes, func(i, j int) bool { return nodes[i].Name() < nodes[j].Name() })
	daemons := p.daemons()
	used := processorTime()
	copied := time.Now()
	topology, err := scheduling.NewTopology(ctx, p.objects, p.cluster, nodes, p.pools, p.types, p.counted, p.options...)
	if err != nil {
		return timing{}, scheduling.Results{}, fmt.Errorf("NewTopology: %w", err)
	}
	scheduler := scheduling.NewScheduler(ctx, p.objects, p.pools, p.cluster, nodes, topology, p.types, daemons,
		p.recorder, p.clock, p.volumes, nil, p.options...)
	built := time.Now()
	results, err := scheduler.Solve(ctx, p.pods)
	if err != nil {
		return timing{}, scheduling.Results{}, fmt.Errorf("Solve: %w", err)
	}
	solved := time.Now()
	used = processorTime() - used
	results = results.TruncateInstanceTypes(ctx, scheduling.MaxInstanceTypes)
	return timing{
		Copy:  copied.Sub(start).Seconds(),
		Total: solved.Sub(copied).Seconds(),
		Solve: solved.Sub(built).Seconds(),
		CPU:   used,
		Nodes: len(results.NewNodeClaims),
	}, results, nil
}
