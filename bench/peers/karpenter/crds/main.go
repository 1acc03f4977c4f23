// Prints the CustomResourceDefinitions that this release of Karpenter and of its KWOK provider bring, as one JSON list.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	kwok "sigs.k8s.io/karpenter/kwok/apis"
	"sigs.k8s.io/karpenter/pkg/apis"
)

func main() {
	if err := json.NewEncoder(os.Stdout).Encode(append(apis.CRDs, kwok.CRDs...)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
