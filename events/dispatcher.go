package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"
)

// Truth is how things are. Package truth has it from a registry and a queue.
type Truth interface {
	// Online says of each user whether one of his clients is connected, anywhere.
	Online(ctx context.Context, users []string) ([]bool, error)
	// Occupied says of each channel whether anybody has subscribed to it.
	Occupied(ctx context.Context, channels []string) ([]bool, error)
	// Acknowledged says whether the client has acknowledged the message, or need not any more.
	Acknowledged(ctx context.Context, client string, id int64) (bool, error)
}

// Sender delivers events, each a JSON object: [switchboard/webhook.Sender]. What its errors mean is told there.
type Sender interface {
	Send(ctx context.Context, events [][]byte) error
	Timeout() time.Duration
}

// Options configures a Dispatcher. Store, Truth and Sender must be set.
type Options struct {
	Store  Store
	Truth  Truth
	Sender Sender
	// Wanted are the kinds that are told. Zero means all.
	Wanted []Kind
	// Batch is the most events in one delivery. Zero means 100.
	Batch int
	// MaxAge is how long sending an event is tried. Zero means 24 h.
	MaxAge time.Duration
	// Logger gets a line for events that are given up. Zero means silence.
	Logger zerolog.Logger
	// Registerer gets the metrics. Zero means that they are kept from view.
	Registerer prometheus.Registerer
}

// Report is what a round did.
type Report struct {
	Checked int // entries looked at
	Told    int // events made
	Sent    int // events taken by the endpoint
	Dead    int // events given up
	Failed  int // attempts to send
}

func (r *Report) add(o Report) {
	r.Checked += o.Checked
	r.Told += o.Told
	r.Sent += o.Sent
	r.Dead += o.Dead
	r.Failed += o.Failed
}

// Dispatcher makes events and sends them, in rounds. Any number may do so at once over one store. It is a
// [Recorder] too, for whoever cleans up after dead servers.
type Dispatcher struct {
	*Recorder
	opts    Options
	metrics metrics

	sending sync.Mutex // one round at a time: others would only find leases

	sweeping sync.Mutex     // one round at a time; guards the field below, of which each shard has one
	swept    [Shards]string // where the next round goes on
}

// NewDispatcher checks opts and registers the metrics.
func NewDispatcher(opts Options) (*Dispatcher, error) {
	opts.Batch = cmp.Or(opts.Batch, 100)
	opts.MaxAge = cmp.Or(opts.MaxAge, 24*time.Hour)
	if opts.Wanted == nil {
		opts.Wanted = Kinds
	}
	switch {
	case opts.Store == nil || opts.Truth == nil || opts.Sender == nil:
		return nil, errors.New("events: Store, Truth and Sender must be set")
	case opts.Batch < 0 || opts.MaxAge < 0:
		return nil, errors.New("events: Batch and MaxAge must not be negative")
	}
	if err := CheckKinds(opts.Wanted); err != nil {
		return nil, err
	}
	d := &Dispatcher{Recorder: NewRecorder(opts.Store, opts.Wanted), opts: opts}
	if err := d.metrics.register(opts.Registerer); err != nil {
		return nil, fmt.Errorf("events: %w", err)
	}
	return d, nil
}

// eachShard calls do for all shards at once, so that they share round trips. The error is that of one of them, for
// when the store is away, or the endpoint, all say the same; the report is right all the same.
func eachShard(ctx context.Context, do func(ctx context.Context, shard int) (Report, error)) (Report, error) {
	var group errgroup.Group
	var mu sync.Mutex // guards all
	var all Report
	for shard := range Shards {
		group.Go(func() error {
			did, err := do(ctx, shard)
			mu.Lock()
			defer mu.Unlock()
			all.add(did)
			return err
		})
	}
	err := group.Wait()
	return all, err
}
