package main

import (
	"context"

	"github.com/spf13/pflag"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	config "github.com/cert-manager/cert-manager/internal/apis/config/cainjector"
	configscheme "github.com/cert-manager/cert-manager/internal/apis/config/cainjector/scheme"
	"github.com/cert-manager/cert-manager/internal/kube"
	"github.com/cert-manager/cert-manager/pkg/apis/config/cainjector/v1alpha1"
	cmscheme "github.com/cert-manager/cert-manager/pkg/client/clientset/versioned/scheme"
	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"
	logf "github.com/cert-manager/cert-manager/pkg/logs"
	"github.com/cert-manager/cert-manager/pkg/util"
)

func runInjector(ctx context.Context, args []string) error {
	c, err := injectorConfiguration(args)
	if err != nil {
		return err
	}
	rest, err := kube.BuildClientConfig("", c.KubeConfig)
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, cmscheme.AddToScheme, apiextensions.AddToScheme, apiregistration.AddToScheme,
		admissionregistration.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	election := c.LeaderElectionConfig
	// The user agent is where the injector takes the field manager of its server-side apply from.
	manager, err := ctrl.NewManager(util.RestConfigWithUserAgent(rest, "cainjector"), ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: c.MetricsListenAddress},
		// Its RBAC and its memory are made for reading single Secrets, not for a copy of all of them.
		Client:                        client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
		LeaderElection:                election.Enabled,
		LeaderElectionID:              "cert-manager-cainjector-leader-election",
		LeaderElectionNamespace:       election.Namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &election.LeaseDuration,
		RenewDeadline:                 &election.RenewDeadline,
		RetryPeriod:                   &election.RetryPeriod,
	})
	if err != nil {
		return err
	}
	err = cainjector.RegisterAllInjectors(ctx, manager, cainjector.SetupOptions{
		Namespace:                    c.Namespace,
		IgnoreNamespaces:             c.IgnoreNamespaces,
		EnableCertificatesDataSource: c.EnableDataSourceConfig.Certificates,
		EnabledReconcilersFor: map[string]bool{
			cainjector.MutatingWebhookConfigurationName:   c.EnableInjectableConfig.MutatingWebhookConfigurations,
			cainjector.ValidatingWebhookConfigurationName: c.EnableInjectableConfig.ValidatingWebhookConfigurations,
			cainjector.APIServiceName:                     c.EnableInjectableConfig.APIServices,
			cainjector.CustomResourceDefinitionName:       c.EnableInjectableConfig.CustomResourceDefinitions,
		},
	})
	if err != nil {
		return err
	}
	return manager.Start(ctx)
}

func injectorConfiguration(args []string) (*config.CAInjectorConfiguration, error) {
	scheme, _, err := configscheme.NewSchemeAndCodecs()
	if err != nil {
		return nil, err
	}
	c := &config.CAInjectorConfiguration{}
	if err := defaults(scheme, &v1alpha1.CAInjectorConfiguration{}, c); err != nil {
		return nil, err
	}
	flags := pflag.NewFlagSet("cainjector", pflag.ContinueOnError)
	flags.StringVar(&c.KubeConfig, "kubeconfig", c.KubeConfig, "how to reach the cluster from outside of it")
	flags.StringVar(&c.MetricsListenAddress, "metrics-listen-address", c.MetricsListenAddress, "host:port, or 0 for none")
	leaderElectionFlags(flags, &c.LeaderElectionConfig)
	featureFlag(flags, &c.FeatureGates)
	logf.AddFlags(&c.Logging, flags)
	return c, apply(flags, args, &c.Logging, c.FeatureGates)
}
