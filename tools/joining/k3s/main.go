// Asks k3s' own agent command: `k3s-agent` prints the names of its flags, a line each, and `k3s-agent CONFIG` reads a
// configuration file (with the additions in CONFIG.d) as an agent does and prints the arguments that its kubelet would
// get. A complaint goes to standard error, and the exit code is 1.
package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/k3s-io/k3s/pkg/cli/cmds"
	"github.com/k3s-io/k3s/pkg/configfilearg"
	"github.com/urfave/cli"
)

func told(*cli.Context) error {
	for _, each := range cmds.AgentConfig.ExtraKubeletArgs {
		fmt.Println(each)
	}
	return nil
}

func names() {
	for _, flag := range cmds.NewAgentCommand(told).Flags {
		for _, name := range strings.Split(flag.GetName(), ",") {
			fmt.Println(strings.TrimSpace(name))
		}
	}
}

func read(config string) error {
	arguments, err := configfilearg.DefaultParser.Parse([]string{"k3s", "agent", "--config", config})
	if err != nil {
		return err
	}
	app := cmds.NewApp()
	app.Writer = io.Discard // a wrong flag would have the whole help printed
	app.Commands = []cli.Command{cmds.NewAgentCommand(told)}
	return app.Run(arguments)
}

func main() {
	if len(os.Args) == 1 {
		names()
		return
	}
	if err := read(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
