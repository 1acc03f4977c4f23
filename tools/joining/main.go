// Checks what a machine joins with by the vendors' own code: `joining kubeadm|kubelet|talos < document`. The first complaint goes
// to standard error, and the exit code is 1.
package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/validation"
	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	kubeadm "k8s.io/kubernetes/cmd/kubeadm/app/util/config"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app/options"
)

// A machine at Hetzner: it runs in a cloud, and installs nothing on a disk of its own.
type cloud struct{}

func (cloud) String() string        { return "cloud" }
func (cloud) RequiresInstall() bool { return false }
func (cloud) InContainer() bool     { return false }

// arguments are read as the kubelet's command reads them, one a line: its own flags with their values, and nothing else.
func arguments(lines string) error {
	config, err := kubelet.NewKubeletConfiguration()
	if err != nil {
		return err
	}
	own := kubelet.NewKubeletFlags()
	flags := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	flags.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	own.AddFlags(flags)
	kubelet.AddKubeletConfigFlags(flags, config)
	kubelet.AddGlobalFlags(flags)
	if err := flags.Parse(strings.Split(strings.TrimSpace(lines), "\n")); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unknown command %q", flags.Arg(0))
	}
	return kubelet.ValidateKubeletFlags(own)
}

func check(kind string, document []byte) error {
	switch kind {
	case "kubeadm":
		return kubeadm.ValidateConfig(document, false, false)
	case "kubelet":
		return arguments(string(document))
	case "talos":
		config, err := configloader.NewFromBytes(document)
		if err != nil {
			return err
		}
		_, err = config.Validate(cloud{}, validation.WithLocal(), validation.WithStrict())
		return err
	default:
		return fmt.Errorf("%q is none of kubeadm, kubelet and talos", kind)
	}
}

func main() {
	document, err := io.ReadAll(os.Stdin)
	if err == nil && len(os.Args) == 2 {
		err = check(os.Args[1], document)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
