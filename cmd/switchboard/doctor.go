package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"switchboard/client/backend"
	"switchboard/cmd/internal/screen"
)

// Values of backend.HealthReport.Status.
const (
	healthy = "healthy"
	problem = "problem"
)

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Says what needs attention, and what to do",
		Long: `Says what needs attention: brokers that died in the last hour, janitors that are missing or late, events that your backend
does not accept, dead letters, the memory of Redis, certificates that end, and limits that are close.

The broker reads it from Redis, and asks all brokers. The exit code is 1 if there is a problem, and 0 if there are only
warnings. docs/operations.md lists the codes.`,
		Example: `  switchboard doctor
  switchboard doctor --json | jq -r '.findings[].code'`,
		Args: args(0, 0, ""), SuggestFor: []string{"health", "status", "diagnose"}, RunE: a.call(a.doctor),
	}
}

func (a *app) doctor(ctx context.Context, sb *backend.Client, _ []string) error {
	report, err := sb.Health(ctx)
	if err != nil {
		return err
	}
	a.screen.Value(report, func() {
		if len(report.Findings) == 0 {
			a.screen.Text("healthy: nothing needs attention")
			return
		}
		table(a, []string{"level", "code", "about", "at", "what to do"}, report.Findings, func(f backend.Finding) []screen.Cell {
			return []screen.Cell{
				{Text: f.Level, Color: levelColor(f.Level)}, {Text: f.Code}, {Text: f.Subject},
				{Text: a.screen.When(f.At, time.Now())}, {Text: f.Message + " " + f.Remedy},
			}
		})
	})
	if report.Status == problem {
		return errDone(exitFailed)
	}
	return nil
}

func levelColor(level string) screen.Color {
	if level == problem {
		return screen.Red
	}
	return screen.Yellow
}
