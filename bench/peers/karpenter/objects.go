package main

import (
	"context"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// objects is a read-only client over a scenario. It costs what the cache of a running Karpenter costs (a lookup, the
// selector, a deep copy of each hit); the fake client of controller-runtime goes through JSON and would be timed instead
// of the scheduler. Filled before it is read, so it needs no lock. Writes panic: nothing that is called here writes.
type objects struct {
	client.Client
	byKind map[schema.GroupVersionKind]*store
}

// store keeps one kind, in the order of the file.
type store struct {
	all         []client.Object
	byKey       map[client.ObjectKey]client.Object
	byNamespace map[string][]client.Object
	byNode      map[string][]client.Object // pods alone, as Karpenter's index on spec.nodeName
}

func newObjects() *objects {
	return &objects{byKind: map[schema.GroupVersionKind]*store{}}
}

func newStore() *store {
	return &store{
		byKey:       map[client.ObjectKey]client.Object{},
		byNamespace: map[string][]client.Object{},
		byNode:      map[string][]client.Object{},
	}
}

// add refuses the second object of a name.
func (o *objects) add(kind schema.GroupVersionKind, object client.Object) error {
	if o.byKind[kind] == nil {
		o.byKind[kind] = newStore()
	}
	kept := o.byKind[kind]
	key := client.ObjectKeyFromObject(object)
	if kept.byKey[key] != nil {
		return fmt.Errorf("%w: %s %s is there twice", errInput, kind.Kind, key)
	}
	kept.all = append(kept.all, object)
	kept.byKey[key] = object
	kept.byNamespace[key.Namespace] = append(kept.byNamespace[key.Namespace], object)
	if pod, ok := object.(*corev1.Pod); ok {
		kept.byNode[pod.Spec.NodeName] = append(kept.byNode[pod.Spec.NodeName], object)
	}
	return nil
}

// every gives the kept objects of a type, not copies.
func every[T client.Object](o *objects) []T {
	var none T
	kind, err := apiutil.GVKForObject(reflect.New(reflect.TypeOf(none).Elem()).Interface().(T), scheme.Scheme)
	if err != nil || o.byKind[kind] == nil {
		return nil
	}
	found := make([]T, 0, len(o.byKind[kind].all))
	for _, object := range o.byKind[kind].all {
		found = append(found, object.(T))
	}
	return found
}

func (o *objects) Scheme() *runtime.Scheme { return scheme.Scheme }

func (o *objects) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	kind, err := apiutil.GVKForObject(into, scheme.Scheme)
	if err != nil {
		return err
	}
	kept := o.byKind[kind]
	if kept != nil && kept.byKey[key] == nil {
		// A cluster-scoped object that is asked for with a namespace, as the API server reads it.
		key = client.ObjectKey{Name: key.Name}
	}
	if kept == nil || kept.byKey[key] == nil {
		return apierrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, key.Name)
	}
	copied := kept.byKey[key].DeepCopyObject()
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(copied).Elem())
	return nil
}

func (o *objects) List(_ context.Context, into client.ObjectList, given ...client.ListOption) error {
	kind, err := apiutil.GVKForObject(into, scheme.Scheme)
	if err != nil {
		return err
	}
	kind.Kind = kind.Kind[:len(kind.Kind)-len("List")]
	var asked client.ListOptions
	asked.ApplyOptions(given)
	candidates, err := o.candidates(kind, &asked)
	if err != nil {
		return err
	}
	copies := asked.UnsafeDisableDeepCopy == nil || !*asked.UnsafeDisableDeepCopy
	found := make([]runtime.Object, 0, len(candidates))
	for _, object := range candidates {
		if asked.Namespace != "" && object.GetNamespace() != asked.Namespace {
			continue
		}
		if asked.LabelSelector != nil && !asked.LabelSelector.Matches(labels.Set(object.GetLabels())) {
			continue
		}
		if copies {
			found = append(found, object.DeepCopyObject())
		} else {
			found = append(found, object)
		}
	}
	return meta.SetList(into, found)
}

// candidates answers from the narrowest index; a field that has none is an error, never an empty answer.
func (o *objects) candidates(kind schema.GroupVersionKind, asked *client.ListOptions) ([]client.Object, error) {
	kept := o.byKind[kind]
	if kept == nil {
		kept = newStore()
	}
	if asked.FieldSelector != nil && !asked.FieldSelector.Empty() {
		node, ok := nodeOf(asked.FieldSelector)
		if !ok || kind.Kind != "Pod" {
			return nil, fmt.Errorf("no index for %s by %s", kind.Kind, asked.FieldSelector)
		}
		return kept.byNode[node], nil
	}
	if asked.Namespace != "" {
		return kept.byNamespace[asked.Namespace], nil
	}
	return kept.all, nil
}

func nodeOf(selector fields.Selector) (string, bool) {
	requirements := selector.Requirements()
	if len(requirements) != 1 || requirements[0].Field != "spec.nodeName" {
		return "", false
	}
	operator := requirements[0].Operator
	return requirements[0].Value, operator == selection.Equals || operator == selection.DoubleEquals
}
