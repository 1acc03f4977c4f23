package main

import (
	"encoding/json"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// understood are the kinds that change what the scheduler decides; another one is refused rather than ignored, since the
// answer would be about another cluster. The value says whether the kind lives in a namespace.
var understood = map[string]bool{
	"CSINode":               false,
	"DaemonSet":             true,
	"KWOKNodeClass":         false,
	"Namespace":             false,
	"Node":                  false,
	"NodeClaim":             false,
	"NodePool":              false,
	"PersistentVolume":      false,
	"PersistentVolumeClaim": true,
	"Pod":                   true,
	"PodDisruptionBudget":   true,
	"PriorityClass":         false,
	"StorageClass":          false,
}

// loadScenario reads a List and gives each object what an API server and a kubelet would have given it.
func loadScenario(path string) (*objects, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errInput, err)
	}
	var list struct {
		Kind  string            `json:"kind"`
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("%w: not JSON: %w", errInput, err)
	}
	if list.Kind != "List" {
		return nil, fmt.Errorf("%w: kind is %q, expected List", errInput, list.Kind)
	}
	loaded := newObjects()
	decoder := scheme.Codecs.UniversalDeserializer()
	for i, item := range list.Items {
		decoded, kind, err := decoder.Decode(item, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("%w: items[%d]: %w", errInput, i, err)
		}
		namespaced, ok := understood[kind.Kind]
		object, isObject := decoded.(client.Object)
		if !ok || !isObject {
			return nil, fmt.Errorf("%w: items[%d]: kind %s is not understood; expand workloads to pods", errInput, i, kind.Kind)
		}
		complete(object, kind.Kind, namespaced)
		if err := loaded.add(*kind, object); err != nil {
			return nil, fmt.Errorf("items[%d]: %w", i, err)
		}
	}
	giveProviderIDs(loaded)
	return loaded, nil
}

func complete(object client.Object, kind string, namespaced bool) {
	if namespaced && object.GetNamespace() == "" {
		object.SetNamespace("default")
	}
	if object.GetUID() == "" {
		object.SetUID(types.UID(fmt.Sprintf("%s/%s/%s", kind, object.GetNamespace(), object.GetName())))
	}
	switch object := object.(type) {
	case *corev1.Pod:
		completePod(object)
	case *corev1.Node:
		completeNode(object)
	case *v1.NodePool:
		if object.Spec.Template.Spec.NodeClassRef == nil {
			object.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{
				Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default",
			}
		}
	}
}

// completePod fills requests from limits as the API server does. A pod without a node gets the condition by which
// kube-scheduler tells Karpenter that it waits for room, unless the pod has another PodScheduled condition or a gate.
func completePod(pod *corev1.Pod) {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			fillRequests(&containers[i].Resources)
		}
	}
	if pod.Spec.NodeName != "" {
		if pod.Status.Phase == "" {
			pod.Status.Phase = corev1.PodRunning
		}
		return
	}
	if pod.Status.Phase == "" {
		pod.Status.Phase = corev1.PodPending
	}
	if len(pod.Spec.SchedulingGates) > 0 {
		return
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled {
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
	})
}

func fillRequests(resources *corev1.ResourceRequirements) {
	for name, limit := range resources.Limits {
		if _, ok := resources.Requests[name]; ok {
			continue
		}
		if resources.Requests == nil {
			resources.Requests = corev1.ResourceList{}
		}
		resources.Requests[name] = limit
	}
}

// completeNode: a node that says nothing else can give all it has.
func completeNode(node *corev1.Node) {
	if len(node.Status.Allocatable) == 0 {
		node.Status.Allocatable = node.Status.Capacity
	}
}

// giveProviderIDs: Karpenter's state leaves out a node of a pool that has no provider ID, and matches node and claim by it.
func giveProviderIDs(loaded *objects) {
	ofClaim := map[string]string{}
	for _, claim := range every[*v1.NodeClaim](loaded) {
		ofClaim[claim.Status.NodeName] = claim.Status.ProviderID
	}
	for _, node := range every[*corev1.Node](loaded) {
		if node.Spec.ProviderID == "" {
			node.Spec.ProviderID = ofClaim[node.Name]
		}
		if node.Spec.ProviderID == "" {
			node.Spec.ProviderID = "kwok://" + node.Name
		}
	}
}
