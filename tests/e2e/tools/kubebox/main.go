// Kubebox is etcd and the Kubernetes control plane in one binary: four programs share most of their code, so
// one link step and one file serve all. The first argument names the program, the rest are its own flags.
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	// As upstream's own mains do: the JSON log format, and metrics of client and version.
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

var programs = map[string]func(arguments []string) int{
	"etcd":                    runEtcd,
	"kube-apiserver":          runCommand(apiserver.NewAPIServerCommand),
	"kube-controller-manager": runCommand(controllermanager.NewControllerManagerCommand),
	"kube-scheduler":          runCommand(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
}

func main() {
	if len(os.Args) > 1 {
		if run, known := programs[os.Args[1]]; known {
			os.Exit(run(os.Args[1:]))
		}
	}
	names := make([]string, 0, len(programs))
	for name := range programs {
		names = append(names, name)
	}
	sort.Strings(names)
	fmt.Fprintf(os.Stderr, "usage: kubebox %s [flags]\n", strings.Join(names, "|"))
	os.Exit(2)
}

// etcdmain ends the process by itself where etcd fails.
func runEtcd(arguments []string) int {
	etcdmain.Main(arguments)
	return 0
}

// The commands read os.Args, so these become what the program would have seen under its own name.
func runCommand(command func() *cobra.Command) func([]string) int {
	return func(arguments []string) int {
		os.Args = arguments
		return cli.Run(command())
	}
}
