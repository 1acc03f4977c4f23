// Command karpenter answers what Karpenter's own scheduler decides about a scenario, and how long it takes.
//
//	karpenter [--consolidate] --instance-types FILE --objects FILE [--objects FILE ...]
//
// Each --objects file is one scenario: a v1 List of Kubernetes objects as a cluster would hold them. Pods without a node
// are pending; everything else is the state of the cluster. The answer is one JSON document a line, in the order of the
// files. The scheduler is called as its own benchmark calls it: NewTopology, NewScheduler, Solve. With --consolidate the
// answer is the first command of the consolidation methods of its disruption package instead.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/logging"
	"sigs.k8s.io/karpenter/pkg/operator/options"
)

// settings are what a caller may choose.
type settings struct {
	objects       paths
	instanceTypes string
	preferences   string
	minValues     string
	repeat        int
	workers       int
	consolidate   bool
}

// paths is a flag that may be given many times.
type paths []string

func (p *paths) String() string { return strings.Join(*p, ",") }

func (p *paths) Set(value string) error {
	*p = append(*p, value)
	return nil
}

// errInput marks what the caller must mend: exit code 2 instead of 1.
var errInput = errors.New("bad input")

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "karpenter: %v\n", err)
		if errors.Is(err, errInput) {
			os.Exit(2)
		}
		os.Exit(1)
	}
}

func run(arguments []string) error {
	chosen, err := parse(arguments)
	if err != nil {
		return err
	}
	log.SetLogger(logging.NopLogger)
	ctx, err := withOptions(context.Background(), chosen)
	if err != nil {
		return err
	}
	catalogue, err := loadCatalogue(ctx, chosen.instanceTypes)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	for _, path := range chosen.objects {
		answer, err := answerFile(ctx, path, catalogue, chosen)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := encoder.Encode(answer); err != nil {
			return err
		}
	}
	return nil
}

// answerFile names the file even when Karpenter itself panics on it.
func answerFile(ctx context.Context, path string, types catalogue, chosen settings) (any, error) {
	loaded, err := loadScenario(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if cause := recover(); cause != nil {
			fmt.Fprintf(os.Stderr, "karpenter: panic while solving %s\n", path)
			panic(cause)
		}
	}()
	if chosen.consolidate {
		return consolidate(ctx, loaded, types, chosen)
	}
	return solve(ctx, loaded, types, chosen)
}

func parse(arguments []string) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("karpenter", flag.ContinueOnError)
	flags.Var(&s.objects, "objects", "a JSON List of Kubernetes objects; may be repeated, one scenario each")
	flags.StringVar(&s.instanceTypes, "instance-types", "", "instance types in the format of Karpenter's KWOK provider (default: its own 144)")
	flags.StringVar(&s.preferences, "preference-policy", "Respect", "Respect or Ignore")
	flags.StringVar(&s.minValues, "min-values-policy", "Strict", "Strict or BestEffort")
	flags.IntVar(&s.repeat, "repeat", 1, "how often each scenario is solved, from the same state")
	flags.IntVar(&s.workers, "workers", 5, "goroutines that look for a node for one pod; Karpenter's own benchmark takes 5")
	flags.BoolVar(&s.consolidate, "consolidate", false, "what consolidation would do first, instead of where pending pods would go")
	if err := flags.Parse(arguments); err != nil {
		return s, fmt.Errorf("%w: %w", errInput, err)
	}
	switch {
	case flags.NArg() > 0:
		return s, fmt.Errorf("%w: unexpected argument %q", errInput, flags.Arg(0))
	case len(s.objects) == 0:
		return s, fmt.Errorf("%w: --objects FILE is needed", errInput)
	case s.repeat < 1 || s.workers < 1:
		return s, fmt.Errorf("%w: --repeat and --workers must be at least 1", errInput)
	}
	return s, nil
}

// withOptions gives Karpenter its defaults, and the two policies; it refuses values that it does not know.
func withOptions(ctx context.Context, s settings) (context.Context, error) {
	var chosen options.Options
	flags := &options.FlagSet{FlagSet: flag.NewFlagSet("options", flag.ContinueOnError)}
	chosen.AddFlags(flags)
	err := chosen.Parse(flags, "--preference-policy", s.preferences, "--min-values-policy", s.minValues)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errInput, err)
	}
	return options.ToContext(injection.WithControllerName(ctx, "provisioner"), &chosen), nil
}
