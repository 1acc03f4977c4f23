package main

import (
	"bufio"
	"os"
	"sort"
	"strconv"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
)

// answer is what is printed for one scenario: the outcome of the last pass, and the times of all.
type answer struct {
	Runs          []timing          `json:"runs"`
	PeakMemory    int64             `json:"peakMemoryBytes"`
	Pods          int               `json:"pods"`
	Claims        []claim           `json:"claims"`
	ExistingNodes []existing        `json:"existingNodes"`
	Errors        map[string]string `json:"errors"`
	Ignored       map[string]string `json:"ignored"`
	IgnoredPools  map[string]string `json:"ignoredNodePools"`
}

// timing is one pass in seconds. Total is NewTopology + NewScheduler + Solve; Copy, the copy of the cluster's nodes that a
// running Karpenter makes before it, stands apart. CPU is the processor time behind Total, of all goroutines and the garbage
// collector: it tells a busy machine from slow code.
type timing struct {
	Copy  float64 `json:"copySeconds"`
	Total float64 `json:"seconds"`
	Solve float64 `json:"solveSeconds"`
	CPU   float64 `json:"cpuSeconds"`
	Nodes int     `json:"nodes"`
}

// claim is one planned node. Price, zone and capacity type are those of its cheapest compatible available offering.
type claim struct {
	NodePool      string            `json:"nodePool"`
	Pods          []string          `json:"pods"`
	InstanceTypes []string          `json:"instanceTypes"`
	Price         float64           `json:"price"`
	Zone          string            `json:"zone"`
	CapacityType  string            `json:"capacityType"`
	Requests      map[string]string `json:"requests"`
}

type existing struct {
	Name string   `json:"name"`
	Pods []string `json:"pods"`
}

func report(results scheduling.Results, asked *problem, runs []timing) *answer {
	said := &answer{
		Runs:          runs,
		PeakMemory:    peakMemory(),
		Pods:          len(asked.pods),
		Claims:        []claim{},
		ExistingNodes: []existing{},
		Errors:        map[string]string{},
		Ignored:       asked.ignored,
		IgnoredPools:  asked.poolNotes,
	}
	for _, planned := range results.NewNodeClaims {
		said.Claims = append(said.Claims, describe(planned))
	}
	for _, node := range results.ExistingNodes {
		if len(node.Pods) > 0 {
			said.ExistingNodes = append(said.ExistingNodes, existing{Name: node.Name(), Pods: namesOf(node.Pods)})
		}
	}
	for pod, err := range results.PodErrors {
		said.Errors[nameOf(pod)] = err.Error()
	}
	return said
}

func describe(planned *scheduling.NodeClaim) claim {
	type priced struct {
		name     string
		offering *cloudprovider.Offering
	}
	var options []priced
	for _, instanceType := range planned.InstanceTypeOptions {
		offerings := instanceType.Offerings.Available().Compatible(planned.Requirements)
		if len(offerings) > 0 {
			options = append(options, priced{name: instanceType.Name, offering: cheapest(offerings)})
		}
	}
	sort.Slice(options, func(i, j int) bool {
		if options[i].offering.Price != options[j].offering.Price {
			return options[i].offering.Price < options[j].offering.Price
		}
		return options[i].name < options[j].name
	})
	said := claim{
		NodePool:      planned.NodePoolName,
		Pods:          namesOf(planned.Pods),
		InstanceTypes: make([]string, 0, len(options)),
		Requests:      map[string]string{},
	}
	for _, option := range options {
		said.InstanceTypes = append(said.InstanceTypes, option.name)
	}
	if len(options) > 0 {
		best := options[0].offering
		said.Price, said.Zone, said.CapacityType = best.Price, best.Zone(), best.CapacityType()
	}
	for name, quantity := range planned.Spec.Resources.Requests {
		said.Requests[string(name)] = quantity.String()
	}
	return said
}

// cheapest settles ties by zone, then capacity type, so that equal plans print equally.
func cheapest(offerings cloudprovider.Offerings) *cloudprovider.Offering {
	best := offerings[0]
	for _, offering := range offerings[1:] {
		if offering.Price < best.Price || offering.Price == best.Price &&
			(offering.Zone() < best.Zone() || offering.Zone() == best.Zone() && offering.CapacityType() < best.CapacityType()) {
			best = offering
		}
	}
	return best
}

func nameOf(pod *corev1.Pod) string { return client.ObjectKeyFromObject(pod).String() }

func namesOf(pods []*corev1.Pod) []string {
	names := make([]string, 0, len(pods))
	for _, pod := range pods {
		names = append(names, nameOf(pod))
	}
	return names
}

// processorTime is what this process has used so far, in seconds.
func processorTime() float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9
}

// peakMemory is the process's largest resident size so far, as Linux counts it; 0 elsewhere.
func peakMemory() int64 {
	file, err := os.Open("/proc/self/status")
	if err != nil {
		return 0
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) > 1 && words[0] == "VmHWM:" {
			kilobytes, _ := strconv.ParseInt(words[1], 10, 64)
			return kilobytes * 1024
		}
	}
	return 0
}
