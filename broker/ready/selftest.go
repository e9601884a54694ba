package ready

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"switchboard/broker/dialect"
	"switchboard/broker/hub"
	"switchboard/queue"
)

const (
	// selfTestTimeout bounds a self test. A test that takes longer fails: clients would also wait that
	// long for their messages.
	selfTestTimeout = 2 * time.Second
	// selfTestInterval is how long a result is reused.
	selfTestInterval = 250 * time.Millisecond
	// selfTestChannels is the number of channels that all servers share for their self tests. With a
	// channel for each server, every start would leave a key in the store.
	selfTestChannels = 64
)

var (
	errUnbound = errors.New("the store does not list this server as a subscriber")
	errTimeout = errors.New("a message was stored but not delivered in time")
)

// selfTest sends a message to itself in the same steps as any other message: the message is stored,
// its owners are read, the queue is drained, and an event loop delivers it.
type selfTest struct {
	opts    Options
	channel string

	mu       sync.Mutex // held during a test; guards the fields below
	testedAt time.Time
	result   Failure
	sub      *hub.Subscription // nil before the first test
	received chan int64        // ids of delivered messages; a newer one replaces an unread one
}

func (s *selfTest) init(o Options) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(o.Member.ID()))
	s.opts, s.channel, s.received = o, fmt.Sprintf("$probe-%d", h.Sum32()%selfTestChannels), make(chan int64, 1)
}

// check returns the result of a test. Concurrent and frequent callers share one.
func (s *selfTest) check() Failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.testedAt) >= selfTestInterval {
		ctx, cancel := context.WithTimeout(context.Background(), selfTestTimeout)
		defer cancel()
		s.result = s.run(ctx)
		s.testedAt = time.Now()
		if s.result.Step == stepOwners {
			s.opts.Member.Rebind() // other bindings are probably lost too
		}
	}
	return s.result
}

func (s *selfTest) run(ctx context.Context) Failure {
	if err := s.subscribe(ctx); err != nil {
		return Failure{stepSubscribe, "the channel of the test message could not be subscribed to", err}
	}
	sent, err := s.opts.Queue.AppendChannel(ctx, queue.ChannelPush{Channel: s.channel, Data: []byte(`"probe"`)})
	if err != nil {
		return Failure{stepStore, "a message could not be stored", err}
	}
	if !slices.Contains(sent.Servers, s.opts.Member.ID()) {
		return Failure{stepOwners, errUnbound.Error(), errUnbound}
	}
	s.sub.Channel.Hint(sent.ID, sent.Prev, nil) // without the message, so that it is read from the store
	for {
		select {
		case id := <-s.received:
			if id >= sent.ID {
				return Failure{}
			}
		case <-ctx.Done():
			return Failure{stepDelivery, errTimeout.Error(), errTimeout}
		}
	}
}

func (s *selfTest) subscribe(ctx context.Context) error {
	if s.sub != nil {
		return nil
	}
	position, err := s.opts.Hub.Acquire(ctx, s.channel, nil)
	if err != nil {
		return err
	}
	l := s.opts.Loop
	subscribed := make(chan *hub.Subscription, 1)
	l.Post(func() {
		sub := new(hub.Subscription)
		s.opts.Hub.Subscribe(sub, l, s, position)
		sub.Start()
		subscribed <- sub
	})
	select {
	case s.sub = <-subscribed:
		return nil
	case <-ctx.Done(): // the loop has ended
		return ctx.Err()
	}
}

// Backlogged implements hub.Subscriber.
func (s *selfTest) Backlogged() bool { return false }

// MayRead implements hub.Subscriber.
func (s *selfTest) MayRead() bool { return true }

// Charge implements hub.Subscriber.
func (s *selfTest) Charge(int, int) {}

// ClientID implements hub.Subscriber.
func (s *selfTest) ClientID() string { return "" }

// Gap implements hub.Subscriber. A gap does not concern this test: it only waits for its own
// message.
func (s *selfTest) Gap(*hub.Subscription, int64, int64) (hold bool) { return false }

// Write implements hub.Subscriber.
func (s *selfTest) Write(batch *dialect.Batch) {
	for _, m := range batch.Messages {
		select {
		case <-s.received:
		default:
		}
		s.received <- m.ID
	}
}
