package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"switchboard/broker"
	"switchboard/internal/await"
	"switchboard/internal/redispipe"
	"switchboard/queue"
	"switchboard/registry"
)

// fleetConnections is the number of connections to Redis that all brokers of a fleet share.
const fleetConnections = 256

// connectTime is how long a client tries to connect.
const connectTime = 30 * time.Second

// fleet is a number of brokers in this process, with links and clients in memory.
type fleet struct {
	options
	network *network
	redis   *redis.Client
	brokers []*inProcess
	clients [][]net.Conn // of each broker
	readers sync.WaitGroup
}

// inProcess is a broker in this process.
type inProcess struct {
	*broker.Broker
	metrics *prometheus.Registry
	stop    context.CancelFunc
	ended   chan error // receives the result of Run
}

func newFleet(o options, addr string) *fleet {
	return &fleet{
		options: o, network: newNetwork(),
		redis: redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, PoolSize: fleetConnections, ReadTimeout: 20 * time.Second}),
	}
}

// start starts n brokers with pauses, which spread their beats.
func (f *fleet) start(ctx context.Context, n int, pause time.Duration) error {
	f.clients = make([][]net.Conn, n)
	for range n {
		b, err := f.startOne(ctx, f.network.address())
		if err != nil {
			return err
		}
		f.brokers = append(f.brokers, b)
		if err := await.Pause(ctx, pause); err != nil {
			return err
		}
	}
	return nil
}

// startOne starts a broker at an address.
func (f *fleet) startOne(ctx context.Context, addr string) (*inProcess, error) {
	b := &inProcess{metrics: prometheus.NewRegistry(), ended: make(chan error, 1)}
	o := brokerOptions("fleet", redispipe.New(f.redis, redispipe.Options{}), f.scaled(beatTime))
	o.Listen = broker.ListenOptions{HTTP: addr, TCP: "off", Open: f.network.listen}
	o.Links = broker.LinkOptions{Dial: f.network.dial}
	o.Store.Shared, o.Runtime.Loops, o.Registerer = true, 1, b.metrics
	o.Timing.Ping, o.Timing.Connect = time.Hour, 2*time.Minute
	var err error
	if b.Broker, err = broker.New(o); err != nil {
		return nil, err
	}
	runCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	b.stop = stop
	go func() { b.ended <- b.Run(runCtx) }()
	if _, err := b.Addrs(ctx); err != nil {
		return nil, errors.Join(err, b.end())
	}
	return b, nil
}

// brokerOptions are those of a broker in this process.
func brokerOptions(name string, pipe *redispipe.Pipe, beat time.Duration) broker.Options {
	return broker.Options{
		Name: name,
		Store: broker.StoreOptions{
			Registry: registry.NewRedis(pipe, registry.Options{Lease: 5 * beat}), Queue: queue.NewRedis(pipe, queue.Options{}),
		},
		Timing: broker.TimingOptions{Beat: beat, Drain: time.Millisecond},
	}
}

// end ends a broker as SIGTERM does.
func (b *inProcess) end() error {
	b.stop()
	err := <-b.ended
	b.ended <- err // end may be called again
	return err
}

// counter returns the value of a counter.
func (b *inProcess) counter(name string) (int64, error) {
	families, err := b.metrics.Gather()
	if err != nil {
		return 0, err
	}
	for _, family := range families {
		if family.GetName() == name && len(family.Metric) == 1 {
			return int64(family.Metric[0].GetCounter().GetValue()), nil
		}
	}
	return 0, fmt.Errorf("there is no counter %s", name)
}

// counters returns the sum of a counter over all brokers but one.
func (f *fleet) counters(name string, without int) (sum int64, err error) {
	for i, b := range f.brokers {
		if i == without {
			continue
		}
		n, err := b.counter(name)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// connect connects clients number first to first+n-1 to broker i, each as a user with a channel of
// its own.
func (f *fleet) connect(ctx context.Context, i, first, n int) error {
	f.clients[i] = make([]net.Conn, n)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxConnecting)
	for k := range n {
		group.Go(func() error {
			for deadline := time.Now().Add(connectTime); ; { // as a client, it tries again
				conn, err := f.connectOne(ctx, f.brokers[i].addr(ctx), first+k)
				if err == nil {
					f.clients[i][k] = conn
					return nil
				}
				if conn != nil {
					_ = conn.Close()
				}
				if await.Pause(ctx, time.Second) != nil || time.Now().After(deadline) {
					return fmt.Errorf("client %d: %w", first+k, err)
				}
			}
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, conn := range f.clients[i] {
		f.readers.Go(func() { discardUntilClosing(conn) })
	}
	return nil
}

func (b *inProcess) addr(ctx context.Context) string {
	addrs, _ := b.Addrs(ctx) // it has started
	return addrs.HTTP
}

// connectOne connects client number k over a WebSocket.
func (f *fleet) connectOne(ctx context.Context, addr string, k int) (net.Conn, error) {
	conn, err := f.network.dial(ctx, "", addr)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := upgrade(conn, addr, "/ws"); err != nil {
		return conn, err
	}
	lines, answers := requests(k, 0, false)
	for line := range bytes.Lines([]byte(lines)) {
		if err := sendText(conn, bytes.TrimSpace(line)); err != nil {
			return conn, err
		}
	}
	return conn, readUntil(conn, `"subscribed"`, answers)
}

// discardUntilClosing reads until the connection ends or the broker asks the client to leave.
func discardUntilClosing(conn net.Conn) {
	defer conn.Close()
	buf := make([]byte, 512)
	for {
		n, err := conn.Read(buf)
		if err != nil || bytes.Contains(buf[:n], []byte(`"closing"`)) {
			return
		}
	}
}

// disconnect closes the clients of broker i.
func (f *fleet) disconnect(i int) {
	for _, conn := range f.clients[i] {
		if conn != nil {
			_ = conn.Close()
		}
	}
}

// close ends everything.
func (f *fleet) close() error {
	for i := range f.clients {
		f.disconnect(i)
	}
	errs := make([]error, len(f.brokers))
	var ends sync.WaitGroup
	for i, b := range f.brokers {
		ends.Go(func() { errs[i] = b.end() })
	}
	ends.Wait()
	f.readers.Wait()
	return errors.Join(append(errs, f.redis.Close())...)
}
