package sweep

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"github.com/prometheus/client_golang/prometheus"

	"switchboard/cmd/internal/setup"
	"switchboard/configs"
	"switchboard/janitor/task"
	"switchboard/queue"
)

// Check runs all checks with the flags of the janitor, and prints a line for each finding. Findings
// are an error.
func Check(args, environ []string, stdout, stderr io.Writer) error {
	settings, err := configs.LoadJanitor(args, environ)
	if err != nil {
		return err
	}
	ctx, stop := setup.UntilSignal()
	defer stop()
	return check(ctx, settings, stdout, stderr)
}

// check runs all checks, and prints a line for each finding. Findings are an error.
func check(ctx context.Context, settings configs.Janitor, stdout, stderr io.Writer) error {
	log, err := setup.Log(stderr, settings.LogLevel, settings.LogFormat)
	if err != nil {
		return err
	}
	redis, err := setup.OpenRedis(string(settings.Redis), settings.RedisTLS, prometheus.NewRegistry(), log)
	if err != nil {
		return err
	}
	defer redis.Close()
	setup.WarnUnknown(log, settings.Unknown)
	out := bufio.NewWriter(stdout)
	report := func(_ string, f task.Finding) { _, _ = fmt.Fprintln(out, f) }
	findings, err := task.Run(ctx, checks(queue.NewRedis(redis.Pipe, settings.Queue()), redis.Pipe, settings.Prefix, log), report)
	if flushErr := out.Flush(); err == nil {
		err = flushErr
	}
	if err != nil {
		return fmt.Errorf("after %d findings: %w", findings, err)
	}
	if findings > 0 {
		return fmt.Errorf("check: findings: %d", findings)
	}
	log.Info().Msg("all records agree")
	return nil
}
