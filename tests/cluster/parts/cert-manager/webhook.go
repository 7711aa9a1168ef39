package main

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/cert-manager/cert-manager/internal/webhook"
	logf "github.com/cert-manager/cert-manager/pkg/logs"
	"github.com/cert-manager/cert-manager/pkg/webhook/options"
)

func runWebhook(ctx context.Context, args []string) error {
	c, err := options.NewWebhookConfiguration()
	if err != nil {
		return err
	}
	flags := pflag.NewFlagSet("webhook", pflag.ContinueOnError)
	options.AddConfigFlags(flags, c)
	if err := apply(flags, args, &c.Logging, c.FeatureGates); err != nil {
		return err
	}
	server, err := webhook.NewCertManagerWebhookServer(logf.FromContext(ctx, "webhook"), *c)
	if err != nil {
		return err
	}
	return server.Run(ctx)
}
