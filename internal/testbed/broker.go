package testbed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"syscall"

	"switchboard/internal/await"
)

// A Broker is a broker as a process. It logs at level info at least.
type Broker struct {
	Program
	API        // HTTP is "" before the first start if the system shall choose the port
	TCP string // host:port, likewise
	ID  string // of the server that runs
}

// Start starts the broker. It returns when the broker listens and is in the list of servers. At
// another start the broker has the same addresses.
func (b *Broker) Start(ctx context.Context) error {
	const anyPort = "127.0.0.1:0"
	if err := b.start("--name", b.Name, "--http", cmp.Or(b.HTTP, anyPort), "--tcp", cmp.Or(b.TCP, anyPort)); err != nil {
		return err
	}
	for _, logged := range []struct {
		message, field string
		into           *string
	}{{"listening", "http", &b.HTTP}, {"listening", "tcp", &b.TCP}, {"joined", "server", &b.ID}} {
		value, err := b.Logged(ctx, logged.message, logged.field)
		if err != nil {
			return fmt.Errorf("%w\n%s", err, b.Tail(10))
		}
		// A listener that is off logs no address. Others use the addresses meanwhile, so they are only
		// written at the first start.
		if value != "" && value != *logged.into {
			*logged.into = value
		}
	}
	return nil
}

// Restart ends the broker by SIGTERM and starts it again.
func (b *Broker) Restart(ctx context.Context) error {
	if err := b.End(ctx, syscall.SIGTERM); err != nil {
		return err
	}
	return b.Start(ctx)
}

// AwaitReady waits until /readyz of a broker answers with 200.
func (a API) AwaitReady(ctx context.Context) error {
	return await.Success(ctx, func() error {
		status, text, err := a.Do(ctx, http.MethodGet, "/readyz", nil)
		if err == nil && status != http.StatusOK {
			err = errors.New(text)
		}
		if err != nil {
			err = fmt.Errorf("the broker at %s is not ready: %w", a.HTTP, err)
		}
		return err
	})
}
