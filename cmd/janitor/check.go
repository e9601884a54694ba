package main

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"github.com/prometheus/client_golang/prometheus"

	"switchboard/cmd/internal/setup"
	"switchboard/configs"
	"switchboard/janitor"
	"switchboard/queue"
)

// runCheck runs `janitor check`, which has the flags of the janitor.
func runCheck(args, environ []string, stdout, stderr io.Writer) int {
	settings, err := configs.LoadJanitor(args, environ)
	if err == nil {
		ctx, stop := setup.UntilSignal()
		defer stop()
		err = checkStates(ctx, settings, stdout, stderr)
	}
	return setup.Exit("janitor", configs.JanitorHelp(), err, stdout, stderr)
}

// checkStates prints a line for each difference between the records of a state. Differences are an
// error.
func checkStates(ctx context.Context, settings configs.Janitor, stdout, stderr io.Writer) error {
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
	report := func(channel, difference string) { _, _ = fmt.Fprintf(out, "%s: %s\n", channel, difference) }
	channels, differences, err := janitor.CheckStates(ctx, queue.NewRedis(redis.Pipe, settings.Queue()), report)
	if flushErr := out.Flush(); err == nil {
		err = flushErr
	}
	if err != nil {
		return err
	}
	if differences > 0 {
		return fmt.Errorf("check: states checked: %d, differences: %d", channels, differences)
	}
	log.Info().Int("states", channels).Msg("the records of all states agree")
	return nil
}
