package setup

import (
	"context"
	"os/signal"
	"syscall"
)

// UntilSignal is a context that ends with SIGTERM or SIGINT. A second one ends the process
// at once, for whoever does not want to wait until the clients are gone.
func UntilSignal() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	context.AfterFunc(ctx, stop) // from then on signals do what they always do
	return ctx, stop
}
