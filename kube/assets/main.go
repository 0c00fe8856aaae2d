// The programs of Kubernetes that tests start, as one program that is chosen by its name.
// Owns: which programs there are. Does not know about: who starts them, and with which flags.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// Each returns the exit status of the program.
var programs = map[string]func() int{
	"etcd": func() int {
		etcdmain.Main(os.Args)
		return 0
	},
	"kube-apiserver": command(apiserver.NewAPIServerCommand),
}

func command(make func() *cobra.Command) func() int {
	return func() int { return cli.Run(make()) }
}

func main() {
	name := filepath.Base(os.Args[0])
	// `make kube-assets` makes a link for each of these names.
	if len(os.Args) == 2 && os.Args[1] == "--names" {
		fmt.Println(strings.Join(names(), " "))
		return
	}
	run, known := programs[name]
	if !known {
		fmt.Fprintf(os.Stderr, "%s: call this program by one of the names %s\n", name, strings.Join(names(), ", "))
		os.Exit(2)
	}
	os.Exit(run())
}

func names() []string {
	all := make([]string, 0, len(programs))
	for name := range programs {
		all = append(all, name)
	}
	sort.Strings(all)
	return all
}
