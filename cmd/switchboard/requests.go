package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"switchboard/client/backend"
)

// requestsFlags are the flags of requests.
type requestsFlags struct {
	redis, prefix   string
	queues          int
	listen, secrets string
	timeout         time.Duration
	concurrency     int
}

func (a *app) requestsCommand() *cobra.Command {
	var f requestsFlags
	c := &cobra.Command{
		Use: "requests [flags] -- COMMAND [ARG]...", Short: "Answers requests of clients by running a command for each",
		Long: `Answers requests of clients: runs COMMAND for each, with the request as JSON on its standard input, and replies with
the JSON that it prints. No output replies null.

With --redis it is a worker: it takes requests from the lists in Redis, one at a time from each list, so that the requests
of a user stay in order, and replies through the broker. With --listen it is the server of the broker's requests.url,
and verifies the signatures.

If COMMAND fails, is too slow or prints something else, the client receives an error: over HTTP with the code that COMMAND
printed as {"error":{"code":…,"message":…}}, or else failed; from a worker as a reply with this object. The standard
error of COMMAND is shown. A worker that is killed loses the request that it is working on; SIGTERM lets it finish.`,
		Example: `  switchboard requests --redis redis://127.0.0.1:6379 -- jq -c '{sum: (.query.a + .query.b)}'
  switchboard requests --listen 127.0.0.1:9000 --secret-file request_secret -- ./answer.py`,
		Args: args(1, -1, "a command after --"),
	}
	flags := c.Flags()
	flags.StringVar(&f.redis, "redis", "", "`URL` of the brokers' Redis, to be a worker")
	flags.StringVar(&f.prefix, "prefix", "", "prefix of the keys in Redis, as on the brokers")
	flags.IntVar(&f.queues, "queues", 16, "number of lists (requests.queues), as on the brokers")
	flags.StringVar(&f.listen, "listen", "", "`ADDRESS` of the HTTP server for requests.url, like 127.0.0.1:9000")
	flags.StringVar(&f.secrets, "secret-file", "", "`file` with the secrets that sign requests (requests.secrets), one per line")
	flags.DurationVar(&f.timeout, "command-timeout", 5*time.Second, "how long a command may take")
	flags.IntVar(&f.concurrency, "concurrency", 16, "most commands at once")
	c.RunE = a.call(func(ctx context.Context, sb *backend.Client, command []string) error {
		switch {
		case f.redis == "" && f.listen == "":
			return usage("missing: --redis or --listen")
		case f.listen != "" && f.secrets == "":
			return usage("--listen: needs --secret-file, since otherwise any caller could run the command")
		case f.concurrency < 1 || f.queues < 1 || f.timeout <= 0:
			return usage("--concurrency, --queues and --command-timeout must be above 0")
		}
		r := &runner{app: a, command: command, timeout: f.timeout, slots: make(chan struct{}, f.concurrency)}
		group, ctx := errgroup.WithContext(ctx)
		if f.redis != "" {
			group.Go(func() error { return r.work(ctx, sb, f) })
		}
		if f.listen != "" {
			group.Go(func() error { return r.listen(ctx, f) })
		}
		if err := group.Wait(); !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	})
	return c
}
