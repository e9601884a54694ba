package main

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

// runCheck runs `janitor check`, which has the flags of the janitor.
func runCheck(args, environ []string, stdout, stderr io.Writer) int {
	settings, err := configs.LoadJanitor(args, environ)
	if err == nil {
		ctx, stop := setup.UntilSignal()
		defer stop()
		err = check(ctx, settings, stdout, stderr)
	}
	return setup.Exit("janitor", configs.JanitorHelp(), err, stdout, stderr)
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
