package broker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"switchboard/broker"
	"switchboard/internal/await"
	"switchboard/internal/redispipe"
	"switchboard/internal/redistest"
	"switchboard/internal/textconn"
	"switchboard/internal/wire"
	"switchboard/queue"
	"switchboard/registry"
)

// testTimeout is a safety net: a test that waits this long has failed.
const testTimeout = 20 * time.Second

var shared *redistest.Server // for tests that do not stop or change the server

// permanentGoroutines are those of gnet's worker pool, which lasts as long as the process.
var permanentGoroutines = []goleak.Option{
	goleak.IgnoreTopFunction("github.com/panjf2000/ants/v2.(*poolCommon).purgeStaleWorkers"),
	goleak.IgnoreTopFunction("github.com/panjf2000/ants/v2.(*poolCommon).ticktock"),
	goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*goWorker).run.func1"),
}

func TestMain(m *testing.M) { os.Exit(redistest.Main(m, &shared, nil, permanentGoroutines...)) }

// Registry holds the methods of a registry that the broker and the tests call.
type Registry interface {
	broker.Registry
	Join(ctx context.Context, s registry.Server) error
	DeclareDead(ctx context.Context, server string) (dead bool, err error)
	Forget(ctx context.Context, server string) error
}

// Queue holds the methods of a queue that the broker and the tests call.
type Queue interface {
	broker.Queue
	Release(ctx context.Context, client, server string) (user string, generation int64, released bool, err error)
}

// store is a registry and a queue that brokers can share.
type store struct {
	registry Registry
	queue    Queue
	shared   bool
}

func memoryStore(o queue.Options) store {
	reg := registry.NewMemory(registry.Options{})
	return store{
		registry: reg,
		queue: queue.NewMemory(o, func(channel string) []string {
			servers, _ := reg.ChannelServers(context.Background(), channel)
			return servers
		}),
	}
}

var prefixes atomic.Int64

// redisStore returns a store in Redis with a new key prefix.
func redisStore(t *testing.T, client redis.UniversalClient, beat time.Duration) (s store, prefix string) {
	prefix = fmt.Sprintf("t%d:", prefixes.Add(1))
	return redisStoreAt(client, prefix, beat), prefix
}

// redisStoreAt returns a store in Redis with a key prefix.
func redisStoreAt(client redis.UniversalClient, prefix string, beat time.Duration) store {
	pipe := redispipe.New(client, redispipe.Options{Timeout: time.Second})
	return store{
		registry: registry.NewRedis(pipe, registry.Options{Prefix: prefix, Lease: 5 * beat}),
		queue:    queue.NewRedis(pipe, queue.Options{Prefix: prefix}),
		shared:   true,
	}
}

// instance is a running broker.
type instance struct {
	*broker.Broker
	broker.Addrs
	stop func() error // shuts the broker down; a second call does nothing
}

// start runs a broker until the test ends.
func start(t *testing.T, s store, change func(*broker.Options)) instance {
	t.Helper()
	o := broker.Options{
		Name:   "b",
		Listen: broker.ListenOptions{HTTP: "127.0.0.1:0", TCP: "127.0.0.1:0"},
		Store:  broker.StoreOptions{Registry: s.registry, Queue: s.queue, Shared: s.shared},
		Timing: broker.TimingOptions{Drain: 10 * time.Millisecond},
	}
	if change != nil {
		change(&o)
	}
	b, err := broker.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	stopped := false
	i := instance{Broker: b}
	i.stop = func() error {
		cancel()
		if stopped {
			return nil
		}
		stopped = true
		return <-done
	}
	t.Cleanup(func() {
		if err := i.stop(); err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
	addrsCtx, cancelAddrs := context.WithTimeout(t.Context(), testTimeout)
	defer cancelAddrs()
	if i.Addrs, err = b.Addrs(addrsCtx); err != nil {
		t.Fatal(err)
	}
	return i
}

// awaitReady waits until /readyz answers with the status want.
func (i instance) awaitReady(t *testing.T, want int) {
	t.Helper()
	await.True(t, fmt.Sprintf("readyz is %d", want), func() bool {
		resp, err := http.Get("http://" + i.HTTP + "/readyz")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == want
	})
}

type object = map[string]any

// call makes an API call and returns status and body.
func (i instance) call(t *testing.T, method, path, body string) (int, object) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+i.HTTP+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, decode(t, raw)
}

func decode(t *testing.T, raw []byte) object {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var o object
	if err := d.Decode(&o); err != nil {
		t.Fatalf("%q is not a JSON object: %v", raw, err)
	}
	return o
}

// push makes a push, fails the test unless it is accepted, and returns its first result.
func (i instance) push(t *testing.T, body string) object {
	t.Helper()
	status, answer := i.call(t, "POST", "/v1/push", body)
	if status != http.StatusOK {
		t.Fatalf("push %s: %d %v", body, status, answer)
	}
	return answer["results"].([]any)[0].(object)
}

// testClient is the client's end of a connection: one JSON object per message.
type testClient struct {
	t     *testing.T
	write func(string) error
	read  func() ([]byte, error) // io.EOF at the end
	close func()
}

// dialers open a connection over each of the three transports.
var dialers = map[string]func(t *testing.T, i instance) *testClient{
	"tcp":                   func(t *testing.T, i instance) *testClient { return dialLines(t, net.Dialer{}, i.TCP) },
	"websocket on the loop": func(t *testing.T, i instance) *testClient { return dialWS(t, "ws://"+i.TCP+"/ws") },
	"websocket on net/http": func(t *testing.T, i instance) *testClient { return dialWS(t, "ws://"+i.HTTP+"/ws") },
}

func dialLines(t *testing.T, d net.Dialer, addr string) *testClient {
	t.Helper()
	return newTestClient(t, func(ctx context.Context) (textconn.Conn, error) { return textconn.DialTCP(ctx, d, addr) })
}

func dialWS(t *testing.T, url string) *testClient {
	t.Helper()
	return dialWSOver(t, &http.Transport{}, url)
}

func dialWSOver(t *testing.T, transport *http.Transport, url string) *testClient {
	t.Helper()
	return newTestClient(t, func(ctx context.Context) (textconn.Conn, error) {
		return textconn.DialWebSocket(ctx, url, &websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}})
	})
}

// newTestClient returns a connection that closes at the end of the test, or after testTimeout.
func newTestClient(t *testing.T, dial func(context.Context) (textconn.Conn, error)) *testClient {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	c, err := dial(ctx)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	p := &testClient{
		t:     t,
		write: func(s string) error { return c.Send(ctx, s) },
		read: func() ([]byte, error) {
			raw, err := c.Receive(ctx)
			if err != nil && ctx.Err() == context.DeadlineExceeded {
				t.Error("the broker neither sent a message nor closed the connection")
			}
			return raw, err
		},
		close: func() { c.Close(); cancel() },
	}
	t.Cleanup(p.close)
	return p
}

// overAllTransports runs a test over each of the three transports.
func overAllTransports(t *testing.T, test func(t *testing.T, dial func(instance) *testClient)) {
	over(t, dialers, test)
}

// over runs a test with each of the dialers.
func over(t *testing.T, dialers map[string]func(*testing.T, instance) *testClient, test func(t *testing.T, dial func(instance) *testClient)) {
	for name, dial := range dialers {
		t.Run(name, func(t *testing.T) {
			test(t, func(i instance) *testClient { return dial(t, i) })
		})
	}
}

// send sends one message.
func (p *testClient) send(format string, args ...any) {
	p.t.Helper()
	if err := p.write(fmt.Sprintf(format, args...)); err != nil {
		p.t.Fatal(err)
	}
}

// receive returns the next message, except for pings.
func (p *testClient) receive() object {
	p.t.Helper()
	for {
		raw, err := p.read()
		if err != nil {
			p.t.Fatalf("the connection ended: %v", err)
		}
		if o := decode(p.t, raw); o["type"] != "ping" {
			return o
		}
	}
}

// expect receives a message and checks the given fields.
func (p *testClient) expect(want object) object {
	p.t.Helper()
	return p.check(p.receive(), want)
}

// check checks the given fields of a message.
func (p *testClient) check(got, want object) object {
	p.t.Helper()
	for k, v := range want {
		if fmt.Sprint(got[k]) != fmt.Sprint(v) {
			p.t.Fatalf("%s is %v, want %v, in %v", k, got[k], v, got)
		}
	}
	return got
}

// untilClosed waits until the connection closes and returns the messages before that.
func (p *testClient) untilClosed() (received []object) {
	p.t.Helper()
	for {
		raw, err := p.read()
		if err != nil {
			return received
		}
		received = append(received, decode(p.t, raw))
	}
}

// clientName turns the name of a test or a transport into a valid client name.
func clientName(name string) string { return strings.NewReplacer(" ", "-", "/", "-").Replace(name) }

// secretOf returns the secret with which a client without a user gets its id again.
func secretOf(client string) string { return "the secret of client " + client }

// connect sends connect and returns the answer.
func (p *testClient) connect(client, user string) object {
	p.t.Helper()
	p.send(`{"type":"connect","client":%q,"user":%q,"secret":%q,"ref":1}`, client, user, secretOf(client))
	return p.expect(object{"type": "connected", "client": wire.ClientID(user, client), "ref": 1})
}

// subscribe subscribes to a channel and returns the answer.
func (p *testClient) subscribe(channel string) object {
	p.t.Helper()
	p.send(`{"type":"subscribe","channel":%q,"ref":2}`, channel)
	return p.expect(object{"type": "subscribed", "channel": channel, "ref": 2})
}
