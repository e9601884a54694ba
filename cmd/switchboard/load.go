package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"switchboard/client"
	"switchboard/client/backend"
)

const (
	// connectsAtOnce is how many clients connect at the same time.
	connectsAtOnce = 64
	// pushesAtOnce bounds the pushes under way.
	pushesAtOnce = 256
	// settle is how long load waits for the last messages.
	settle = 5 * time.Second
)

// loadFlags are the flags of load.
type loadFlags struct {
	connections, channels, rate, size int
	duration                          time.Duration
	prefix, key                       string
}

func (a *app) loadCommand() *cobra.Command {
	var f loadFlags
	c := &cobra.Command{
		Use: "load", Short: "Measures a running broker with connections and pushes of its own",
		Long: `Connects clients over WebSocket, spreads them over channels, pushes at a fixed rate, and prints how long pushes and
deliveries took. Everything runs on this machine, so it measures this command, too: above some 50,000 deliveries a
second use the programs in bench/.

A broker with token keys needs --signing-key, with which the clients get tokens of the users load-1, load-2, …, and
rules that let them subscribe to the channels. A message that a client did not receive ends with exit code 1.`,
		Example: `  switchboard load --connections 1000 --rate 200 --duration 30s`,
		Args:    args(0, 0, ""),
	}
	flags := c.Flags()
	flags.IntVar(&f.connections, "connections", 100, "clients")
	flags.IntVar(&f.channels, "channels", 1, "channels; each client subscribes to one")
	flags.IntVar(&f.rate, "rate", 100, "pushes a second")
	flags.IntVar(&f.size, "size", 100, "bytes of a message, about")
	flags.DurationVar(&f.duration, "duration", 10*time.Second, "how long to push")
	flags.StringVar(&f.prefix, "prefix", "load", "`name` before the colon in the channels' names")
	flags.StringVar(&f.key, "signing-key", "", signingKeyHelp)
	c.RunE = a.call(func(ctx context.Context, sb *backend.Client, _ []string) error {
		if f.connections < 1 || f.channels < 1 || f.rate < 1 || f.size < 1 || f.duration <= 0 {
			return usage("--connections, --channels, --rate, --size and --duration must be above 0")
		}
		if _, err := sb.Self(ctx); err != nil { // clients would try to connect until they are interrupted
			return err
		}
		return a.load(ctx, sb, f)
	})
	return c
}

// load is a running load test.
type load struct {
	flags loadFlags
	run   string // random, so that several runs do not share channels

	mu          sync.Mutex // guards the fields below
	subscribers []int      // by channel
	pushes      *hdrhistogram.Histogram
	deliveries  *hdrhistogram.Histogram
	expected    int64
	failed      int64
	firstError  error
	done        chan struct{} // receives when all expected messages have arrived
}

// loadReport is the result with --json. Latencies are in ms.
type loadReport struct {
	Connections   int         `json:"connections"`
	ConnectSecond float64     `json:"connects_per_second"`
	Pushes        int64       `json:"pushes"`
	Failed        int64       `json:"failed"`
	PushSecond    float64     `json:"pushes_per_second"`
	Push          percentiles `json:"push_ms"`
	Delivered     int64       `json:"delivered"`
	Missing       int64       `json:"missing"`
	Delivery      percentiles `json:"delivery_ms"` // from the call of the push to the callback of the client
}

type percentiles struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

func percentilesOf(h *hdrhistogram.Histogram) percentiles {
	at := func(q float64) float64 { return float64(h.ValueAtQuantile(q)) / 1000 }
	return percentiles{at(50), at(90), at(99), float64(h.Max()) / 1000}
}

func (p percentiles) String() string {
	return fmt.Sprintf("p50 %.2f ms, p90 %.2f ms, p99 %.2f ms, max %.2f ms", p.P50, p.P90, p.P99, p.Max)
}

func (a *app) load(ctx context.Context, sb *backend.Client, f loadFlags) error {
	l := &load{
		flags: f, run: rand.Text()[:8], subscribers: make([]int, f.channels),
		pushes: hdrhistogram.New(1, 60_000_000, 3), deliveries: hdrhistogram.New(1, 60_000_000, 3), // microseconds
		done: make(chan struct{}, 1),
	}
	ctx, cancel := context.WithCancel(ctx)
	var clients sync.WaitGroup
	defer clients.Wait()
	defer cancel()
	began := time.Now()
	if err := l.connectAll(ctx, a, &clients); err != nil {
		return err
	}
	report := loadReport{Connections: f.connections, ConnectSecond: float64(f.connections) / time.Since(began).Seconds()}
	if !a.json {
		a.note("%d clients are connected; pushing for %s", f.connections, f.duration)
	}
	began = time.Now()
	l.pushAll(ctx, sb)
	report.PushSecond = float64(l.pushes.TotalCount()) / time.Since(began).Seconds()
	l.settle(ctx)
	return a.printLoad(l, report)
}

// connectAll connects the clients and subscribes each to its channel. They end with ctx.
func (l *load) connectAll(ctx context.Context, a *app, clients *sync.WaitGroup) error {
	config, err := a.tlsConfig()
	if err != nil {
		return err
	}
	var key signingKey
	if l.flags.key != "" {
		if key, err = a.signingKey(l.flags.key); err != nil {
			return err
		}
	}
	urls := webSocketURLs(a.addresses())
	group, connecting := errgroup.WithContext(ctx)
	group.SetLimit(connectsAtOnce)
	for i := range l.flags.connections {
		group.Go(func() error {
			o := client.Options{URLs: urls, TLS: config, Client: fmt.Sprintf("load-%s-%d", l.run, i+1), AutoAck: true, OnMessage: l.received}
			user := fmt.Sprintf("load-%d", i+1)
			if key.method != nil {
				o.TokenSource = func(context.Context) (string, error) {
					return issue(tokenFlags{user: user, ttl: time.Hour}, key, time.Now())
				}
			} else {
				o.User = user
			}
			return l.connect(ctx, connecting, o, i%l.flags.channels, clients)
		})
	}
	return group.Wait()
}

// connect connects a client until ctx ends, and subscribes it to a channel.
func (l *load) connect(ctx, connecting context.Context, o client.Options, channel int, clients *sync.WaitGroup) error {
	c, err := client.New(o)
	if err != nil {
		return err
	}
	clients.Go(func() { _ = c.Run(ctx) }) // Subscribe returns its error
	_, err = c.Subscribe(connecting, l.channel(channel), client.SubscribeOptions{})
	if closed, ok := errors.AsType[*client.ClosedError](err); ok && closed.Reason == client.CloseUnauthorized {
		return &client.Error{Code: client.Unauthorized, Message: "the broker refuses the clients: it needs tokens, see --signing-key"}
	}
	if err != nil {
		return fmt.Errorf("connect client %s: %w", o.Client, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.subscribers[channel]++
	return nil
}

func (l *load) channel(i int) string { return fmt.Sprintf("%s:%s-%d", l.flags.prefix, l.run, i+1) }

// pushAll pushes at the rate until the duration has passed.
func (l *load) pushAll(ctx context.Context, sb *backend.Client) {
	ctx, cancel := context.WithTimeout(ctx, l.flags.duration)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(pushesAtOnce)
	data := strings.Repeat("x", l.flags.size)
	began := time.Now()
	for n := 0; ; n++ {
		wait(ctx, time.Until(began.Add(time.Duration(n)*time.Second/time.Duration(l.flags.rate))))
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error { l.push(sb, n%l.flags.channels, data); return nil })
	}
	_ = group.Wait() // push keeps its errors
}

// push makes one push. Deliveries may arrive before its answer, so the time is that of the call.
func (l *load) push(sb *backend.Client, channel int, data string) {
	began := time.Now()
	// The context of the test has ended for the last pushes, which must be complete to be counted.
	results, err := sb.Push(context.Background(), backend.Push{
		Channel: l.channel(channel), Data: fmt.Sprintf("%d %s", began.UnixNano(), data),
	})
	if err == nil {
		err = results.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.failed++
		if l.firstError == nil {
			l.firstError = err
		}
		return
	}
	_ = l.pushes.RecordValue(max(1, time.Since(began).Microseconds())) // an hour and more does not count
	l.expected += int64(l.subscribers[channel])
}

// received counts a message of a client.
func (l *load) received(m client.Message) {
	var nanoseconds int64
	if _, err := fmt.Sscanf(string(m.Data), `"%d `, &nanoseconds); err != nil {
		return // a message of others, such as one to all clients
	}
	d := time.Since(time.Unix(0, nanoseconds))
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.deliveries.RecordValue(max(1, d.Microseconds()))
	if l.deliveries.TotalCount() >= l.expected {
		select {
		case l.done <- struct{}{}:
		default:
		}
	}
}

// settle waits for the messages that are on their way.
func (l *load) settle(ctx context.Context) {
	late := time.After(settle)
	for {
		l.mu.Lock()
		complete := l.deliveries.TotalCount() >= l.expected
		l.mu.Unlock()
		if complete {
			return
		}
		select {
		case <-l.done:
		case <-ctx.Done():
			return
		case <-late:
			return
		}
	}
}

func (a *app) printLoad(l *load, r loadReport) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Pushes, r.Failed, r.Delivered = l.pushes.TotalCount(), l.failed, l.deliveries.TotalCount()
	r.Missing, r.Push, r.Delivery = max(0, l.expected-r.Delivered), percentilesOf(l.pushes), percentilesOf(l.deliveries)
	a.screen.Value(r, func() {
		a.screen.Pairs("connections", fmt.Sprintf("%d, %.0f a second", r.Connections, r.ConnectSecond),
			"pushes", fmt.Sprintf("%d, %.0f a second, %d failed", r.Pushes, r.PushSecond, r.Failed), "push", r.Push.String(),
			"deliveries", fmt.Sprintf("%d, %d missing", r.Delivered, r.Missing), "delivery", r.Delivery.String())
	})
	if l.firstError != nil {
		return l.firstError
	}
	if r.Missing > 0 {
		return fmt.Errorf("%s did not arrive", count(int(r.Missing), "message"))
	}
	return nil
}
