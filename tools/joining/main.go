// Checks what a machine joins with by the vendors' own code: `joining kubeadm|talos < document`. The first complaint goes
// to standard error, and the exit code is 1.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/validation"
	kubeadm "k8s.io/kubernetes/cmd/kubeadm/app/util/config"
)

// A machine at Hetzner: it runs in a cloud, and installs nothing on a disk of its own.
type cloud struct{}

func (cloud) String() string        { return "cloud" }
func (cloud) RequiresInstall() bool { return false }
func (cloud) InContainer() bool     { return false }

func check(kind string, document []byte) error {
	switch kind {
	case "kubeadm":
		return kubeadm.ValidateConfig(document, false, false)
	case "talos":
		config, err := configloader.NewFromBytes(document)
		if err != nil {
			return err
		}
		_, err = config.Validate(cloud{}, validation.WithLocal(), validation.WithStrict())
		return err
	default:
		return fmt.Errorf("%q is neither kubeadm nor talos", kind)
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
