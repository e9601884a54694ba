package events

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"switchboard/internal/setting"
)

// Truth is the source of truth about users, channels, messages and fields. Package truth implements
// it over a registry and a queue.
type Truth interface {
	// Online reports for each user whether one of its clients is connected to any instance.
	Online(ctx context.Context, users []string) ([]bool, error)
	// Occupied reports for each channel whether it has a subscriber.
	Occupied(ctx context.Context, channels []string) ([]bool, error)
	// Acknowledged reports whether the client, or another client of the message's acknowledgement
	// group, has acknowledged the message.
	Acknowledged(ctx context.Context, client string, id int64) (bool, error)
	// EndFields removes from each channel's state the fields that have ended, and returns all fields
	// that have ended after the position. The results are in the order of the positions.
	EndFields(ctx context.Context, positions []FieldsPosition) []EndedFields
	// Fields returns the state of each channel, in their order.
	Fields(ctx context.Context, channels []string) []FieldsState
}

// FieldsPosition is an id in a channel's log.
type FieldsPosition struct {
	Channel string
	After   int64
}

// FieldsState describes a channel's state.
type FieldsState struct {
	Last  int64 // id of the last message of the channel's log
	Due   int64 // earliest end of a field, Unix ms; 0 for none
	Empty bool  // the channel has no fields
	Err   error // if set, the rest is not valid
}

// EndedFields are the fields of a channel that have ended after a position.
type EndedFields struct {
	FieldsState
	Messages []EndedMessage // in the order of the log
	Upto     int64          // the log has been read up to this id
	More     bool           // there may be more Messages after Upto: repeat the call
}

// EndedMessage is a message about fields that have ended.
type EndedMessage struct {
	ID      int64
	Cleared bool              // all fields have ended
	Gone    map[string]string // the reason for each field: expired or left
}

// Sender sends events, each a JSON object, in one delivery. [switchboard/webhook.Sender] implements
// it and documents its errors.
type Sender interface {
	Send(ctx context.Context, events [][]byte) error
	Timeout() time.Duration
}

// Options configures a Dispatcher. Store, Truth and Sender must be set. Zero means the default in a
// field's tag, if it has one.
type Options struct {
	Store  Store
	Truth  Truth
	Sender Sender
	// Wanted are the kinds of events to send. Zero means all.
	Wanted []Kind `setting:"webhooks.events" choices:"user_online,user_offline,channel_occupied,channel_vacated,message_undelivered,fields_gone,hold_expired,room_ended" unset:"default all" help:"kinds of events: user_online, user_offline, channel_occupied, channel_vacated,\nmessage_undelivered, fields_gone, hold_expired, room_ended; the same on brokers\nand janitors"`
	// Translate makes other events than fields_gone in some channels. Zero means none.
	Translate Translate
	Batch     int           `setting:"webhooks.batch" default:"100" help:"maximum number of events in one delivery"`
	MaxAge    time.Duration `setting:"webhooks.max_age" default:"24h" help:"how long an event is retried before it becomes a dead letter"`
	// Logger receives a line when events are moved to the dead letters. Zero means silence.
	Logger zerolog.Logger
	// Registerer registers the metrics. Zero means that they are not registered.
	Registerer prometheus.Registerer
}

// A Report is the result of a round.
type Report struct {
	Checked      int // entries checked; of a SweepRound: checks scheduled
	Created      int // events created
	Sent         int // events accepted by the endpoint
	DeadLettered int // events moved to the dead letters
	Failed       int // failed attempts to send
}

func (r *Report) add(o Report) {
	r.Checked += o.Checked
	r.Created += o.Created
	r.Sent += o.Sent
	r.DeadLettered += o.DeadLettered
	r.Failed += o.Failed
}

// A Dispatcher creates and sends events in rounds. Several can use one store at the same time. A
// janitor uses its [Recorder] to record the bindings that it removes from dead servers.
type Dispatcher struct {
	*Recorder
	opts    Options
	metrics metrics

	// sendMu allows one SendRound at a time. A second one would find all outboxes leased.
	sendMu sync.Mutex

	sweepMu sync.Mutex     // allows one SweepRound at a time; guards the fields below
	cursors [Shards]string // where the next SweepRound continues in each shard, among the reported entries
	tracked [Shards]string // and among the tracked channels
}

// NewDispatcher validates opts and registers the metrics.
func NewDispatcher(opts Options) (*Dispatcher, error) {
	setting.Fill(&opts)
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

// eachShard calls do for all shards concurrently, so that they share round trips. It returns the
// error of one shard: if the store or the endpoint is unavailable, all shards have the same error.
// The report is complete in every case.
func eachShard(ctx context.Context, do func(ctx context.Context, shard int) (Report, error)) (Report, error) {
	var group errgroup.Group
	var mu sync.Mutex // guards total
	var total Report
	for shard := range Shards {
		group.Go(func() error {
			report, err := do(ctx, shard)
			mu.Lock()
			defer mu.Unlock()
			total.add(report)
			return err
		})
	}
	err := group.Wait()
	return total, err
}
