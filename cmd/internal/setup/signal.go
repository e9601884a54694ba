package setup

import (
	"context"
	"os/signal"
	"syscall"
)

// UntilSignal returns a context that ends at SIGTERM or SIGINT. A second signal ends the process at
// once, without waiting for the clients.
func UntilSignal() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	context.AfterFunc(ctx, stop) // the next signal has its default effect
	return ctx, stop
}
