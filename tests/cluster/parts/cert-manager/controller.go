package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/cert-manager/cert-manager/internal/apis/config/shared"
	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/healthz"
	logf "github.com/cert-manager/cert-manager/pkg/logs"

	// The controllers and the kinds of issuers, which register themselves: all that a cluster without a way out can use.
	// One of those left out (Venafi) takes a module that not every proxy serves, and what lists the controllers with
	// their defaults takes all of them.
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
)

// controllerConfiguration is what the flags set.
type controllerConfiguration struct {
	controller.ContextOptions
	controllers    []string
	workers        int
	metricsAddress string
	healthzAddress string
	healthzTimeout time.Duration
	leaderElection shared.LeaderElectionConfig
	logging        logsapi.LoggingConfiguration
	features       map[string]bool
}

func runController(ctx context.Context, args []string) error {
	c, err := parseController(args)
	if err != nil {
		return err
	}
	// Whatever ends first, for whichever reason, ends all.
	group, ctx := errgroup.WithContext(ctx)
	factory, err := controller.NewContextFactory(ctx, c.ContextOptions)
	if err != nil {
		return err
	}
	shared, err := factory.Build()
	if err != nil {
		return err
	}
	health := healthz.NewServer(c.healthzTimeout)
	listener, err := net.Listen("tcp", c.healthzAddress)
	if err != nil {
		return err
	}
	group.Go(func() error { return health.Start(ctx, listener) })
	if err := serveMetrics(ctx, group, shared, c.metricsAddress); err != nil {
		return err
	}
	if c.leaderElection.Enabled {
		if err := lead(ctx, group, factory, c.leaderElection, health.LeaderHealthzAdaptor); err != nil {
			return err
		}
	}
	log := logf.FromContext(ctx)
	for name, build := range controller.Known() {
		if !isEnabled(c.controllers, name) {
			log.V(logf.InfoLevel).Info("not starting controller as it's disabled", "controller", name)
			continue
		}
		loop, err := build(factory)
		if err != nil {
			return fmt.Errorf("controller %s: %w", name, err)
		}
		group.Go(func() error {
			if err := loop.Run(c.workers, ctx); err != nil && ctx.Err() == nil {
				return fmt.Errorf("controller %s: %w", name, err)
			}
			return nil
		})
	}
	// Each controller has asked for the caches that it wants; they are filled from here on.
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	shared.HTTP01ResourceMetadataInformersFactory.Start(ctx.Done())
	return group.Wait()
}

// parseController gives cert-manager's own defaults, overridden by the flags.
func parseController(args []string) (*controllerConfiguration, error) {
	c := &controllerConfiguration{
		ContextOptions: controller.ContextOptions{
			KubernetesAPIQPS:   20,
			KubernetesAPIBurst: 50,
			IssuerOptions:      controller.IssuerOptions{ClusterResourceNamespace: "kube-system"},
			CertificateOptions: controller.CertificateOptions{
				CopiedAnnotationPrefixes:                 []string{"*", "-kubectl.kubernetes.io/", "-fluxcd.io/", "-argocd.argoproj.io/"},
				CertificateRequestMinimumBackoffDuration: time.Hour,
				CertificateRequestMaximumBackoffDuration: 32 * time.Hour,
			},
			// Not zero: the context is refused without them, even where nobody solves challenges.
			ACMEOptions: controller.ACMEOptions{
				HTTP01SolverResourceRequestCPU:    resource.MustParse("10m"),
				HTTP01SolverResourceRequestMemory: resource.MustParse("64Mi"),
				HTTP01SolverResourceLimitsCPU:     resource.MustParse("100m"),
				HTTP01SolverResourceLimitsMemory:  resource.MustParse("64Mi"),
				ACMEHTTP01SolverRunAsNonRoot:      true,
				DNS01CheckRetryPeriod:             10 * time.Second,
			},
			SchedulerOptions: controller.SchedulerOptions{MaxConcurrentChallenges: 60},
		},
		controllers:    []string{"*"},
		workers:        5,
		metricsAddress: "0.0.0.0:9402",
		healthzAddress: "0.0.0.0:9403",
		healthzTimeout: 20 * time.Second,
		leaderElection: electionDefaults,
	}
	logsapi.SetRecommendedLoggingConfiguration(&c.logging)
	flags := pflag.NewFlagSet("controller", pflag.ContinueOnError)
	flags.StringVar(&c.Kubeconfig, "kubeconfig", c.Kubeconfig, "how to reach the cluster from outside of it")
	flags.StringVar(&c.ClusterResourceNamespace, "cluster-resource-namespace", c.ClusterResourceNamespace, "namespace of what ClusterIssuers own")
	flags.StringSliceVar(&c.controllers, "controllers", c.controllers, "which to run: *, name, -name")
	flags.BoolVar(&c.EnableOwnerRef, "enable-certificate-owner-ref", c.EnableOwnerRef, "whether a Certificate owns its Secret")
	flags.IntVar(&c.MaxConcurrentChallenges, "max-concurrent-challenges", c.MaxConcurrentChallenges, "how many challenges at once")
	flags.StringVar(&c.HTTP01SolverImage, "acme-http01-solver-image", c.HTTP01SolverImage, "image that answers HTTP-01 challenges")
	flags.StringVar(&c.metricsAddress, "metrics-listen-address", c.metricsAddress, "host:port, or 0 for none")
	leaderElectionFlags(flags, &c.leaderElection)
	featureFlag(flags, &c.features)
	logf.AddFlags(&c.logging, flags)
	return c, apply(flags, args, &c.logging, c.features)
}

// isEnabled reads a list such as ["*", "-name"].
func isEnabled(list []string, name string) bool {
	if slices.Contains(list, "-"+name) {
		return false
	}
	return slices.Contains(list, "*") || slices.Contains(list, name)
}

func serveMetrics(ctx context.Context, group *errgroup.Group, c *controller.Context, address string) error {
	if address == "0" {
		return nil
	}
	certmanager := c.SharedInformerFactory.Certmanager().V1()
	c.Metrics.SetupCertificateCollector(certmanager.Certificates().Lister())
	c.Metrics.SetupIssuerCollector(certmanager.Issuers().Lister())
	c.Metrics.SetupClusterIssuerCollector(certmanager.ClusterIssuers().Lister())
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := c.Metrics.NewServer(listener)
	group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		return server.Close()
	})
	return nil
}

// lead returns once this instance is elected, and ends the group when it is no more.
func lead(
	ctx context.Context, group *errgroup.Group, factory *controller.ContextFactory, election shared.LeaderElectionConfig,
	watchdog *leaderelection.HealthzAdaptor,
) error {
	own, err := factory.Build("leader-election")
	if err != nil {
		return err
	}
	identity, err := os.Hostname() // The pod's name.
	if err != nil {
		return err
	}
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, election.Namespace, "cert-manager-controller",
		own.Client.CoreV1(), own.Client.CoordinationV1(),
		resourcelock.ResourceLockConfig{Identity: identity, EventRecorder: own.Recorder})
	if err != nil {
		return err
	}
	elected := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            lock,
		LeaseDuration:   election.LeaseDuration,
		RenewDeadline:   election.RenewDeadline,
		RetryPeriod:     election.RetryPeriod,
		ReleaseOnCancel: true,
		WatchDog:        watchdog,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(elected) },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return err
	}
	group.Go(func() error {
		elector.Run(ctx)
		if ctx.Err() == nil {
			return errors.New("lost the leader election")
		}
		return nil
	})
	select {
	case <-elected:
	case <-ctx.Done():
	}
	return nil
}
