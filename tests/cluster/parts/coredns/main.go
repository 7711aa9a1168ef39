// CoreDNS with the few plugins that a cluster without a way out has a use for.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/template"
)

func main() {
	// The order in which a query passes through them, whatever the order in the Corefile.
	dnsserver.Directives = []string{"health", "ready", "errors", "log", "cache", "template", "kubernetes"}
	coremain.Run()
}
