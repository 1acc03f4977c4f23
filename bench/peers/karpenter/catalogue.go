package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	kwok "sigs.k8s.io/karpenter/kwok/cloudprovider"
	kwokoptions "sigs.k8s.io/karpenter/kwok/options"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
)

type catalogue []*cloudprovider.InstanceType

// availability is the one thing in the file that Karpenter's KWOK provider does not honour.
type availability []struct {
	Offerings []struct {
		Available *bool
	} `json:"offerings"`
}

// loadCatalogue lets Karpenter's KWOK provider read the file: labels, overhead and the default of 110 pods are its own.
// It calls every offering available; here `"Available": false` is believed, so that scenarios can have stock-outs.
func loadCatalogue(ctx context.Context, path string) (catalogue, error) {
	types, err := kwok.ConstructInstanceTypes(kwokoptions.ToContext(ctx, &kwokoptions.Options{InstanceTypesFilePath: path}))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errInput, path, err)
	}
	if path == "" {
		return types, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errInput, err)
	}
	var written availability
	if err := json.Unmarshal(text, &written); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errInput, path, err)
	}
	for i, instanceType := range types {
		for j, offering := range instanceType.Offerings {
			if said := written[i].Offerings[j].Available; said != nil {
				offering.Available = *said
			}
		}
	}
	return types, nil
}
