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

// patience is a safety net: a test that waits this long has failed.
const patience = 20 * time.Second

var shared *redistest.Server // for the tests that do not break it

// gnet's pool of workers, process-wide, stays.
var staying = []goleak.Option{
	goleak.IgnoreTopFunction("github.com/panjf2000/ants/v2.(*poolCommon).purgeStaleWorkers"),
	goleak.IgnoreTopFunction("github.com/panjf2000/ants/v2.(*poolCommon).ticktock"),
	goleak.IgnoreAnyFunction("github.com/panjf2000/ants/v2.(*goWorker).run.func1"),
}

func TestMain(m *testing.M) { os.Exit(redistest.Main(m, &shared, nil, staying...)) }

// store is a registry and a queue, as several brokers may share them.
type store struct {
	registry registry.Registry
	queue    queue.Queue
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

// redisStore is a store with a prefix of its own on a server.
func redisStore(t *testing.T, client redis.UniversalClient, beat time.Duration) (s store, prefix string) {
	prefix = fmt.Sprintf("t%d:", prefixes.Add(1))
	pipe := redispipe.New(client, redispipe.Options{Timeout: time.Second})
	return store{
		registry: registry.NewRedis(pipe, registry.Options{Prefix: prefix, Lease: 5 * beat}),
		queue:    queue.NewRedis(pipe, queue.Options{Prefix: prefix}),
		shared:   true,
	}, prefix
}

// instance is one broker that runs.
type instance struct {
	*broker.Broker
	broker.Addrs
	stop func() error // idempotent: ends the broker in order
}

// start runs a broker for the length of the test.
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
			t.Errorf("the broker ended with: %v", err)
		}
	})
	waitCtx, done2 := context.WithTimeout(t.Context(), patience)
	defer done2()
	if i.Addrs, err = b.Addrs(waitCtx); err != nil {
		t.Fatal(err)
	}
	return i
}

// ready waits until the broker says that it is.
func (i instance) ready(t *testing.T, want int) {
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

// push makes a push that must be accepted and returns its first result.
func (i instance) push(t *testing.T, body string) object {
	t.Helper()
	status, answer := i.call(t, "POST", "/v1/push", body)
	if status != http.StatusOK {
		t.Fatalf("push %s: %d %v", body, status, answer)
	}
	return answer["results"].([]any)[0].(object)
}

// peer is the client's end of a connection: one JSON object per message.
type peer struct {
	t     *testing.T
	write func(string) error
	read  func() ([]byte, error) // io.EOF at the end
	close func()
}

// ways are the three ways in.
var ways = map[string]func(t *testing.T, i instance) *peer{
	"tcp":                   func(t *testing.T, i instance) *peer { return dialLines(t, net.Dialer{}, i.TCP) },
	"websocket on the loop": func(t *testing.T, i instance) *peer { return dialWS(t, "ws://"+i.TCP+"/ws") },
	"websocket on net/http": func(t *testing.T, i instance) *peer { return dialWS(t, "ws://"+i.HTTP+"/ws") },
}

func dialLines(t *testing.T, d net.Dialer, addr string) *peer {
	t.Helper()
	return newPeer(t, func(ctx context.Context) (textconn.Conn, error) { return textconn.DialTCP(ctx, d, addr) })
}

func dialWS(t *testing.T, url string) *peer { t.Helper(); return dialWSBy(t, &http.Transport{}, url) }

func dialWSBy(t *testing.T, transport *http.Transport, url string) *peer {
	t.Helper()
	return newPeer(t, func(ctx context.Context) (textconn.Conn, error) {
		return textconn.DialWebSocket(ctx, url, &websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}})
	})
}

// newPeer returns a connection that ends with the test, and at the latest after patience.
func newPeer(t *testing.T, dial func(context.Context) (textconn.Conn, error)) *peer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	c, err := dial(ctx)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	p := &peer{
		t:     t,
		write: func(s string) error { return c.Send(ctx, s) },
		read:  func() ([]byte, error) { return c.Receive(ctx) },
		close: func() { c.Close(); cancel() },
	}
	t.Cleanup(p.close)
	return p
}

// overAll runs a test over the three ways in.
func overAll(t *testing.T, test func(t *testing.T, dial func(instance) *peer)) {
	for name, dial := range ways {
		t.Run(name, func(t *testing.T) {
			test(t, func(i instance) *peer { return dial(t, i) })
		})
	}
}

// say sends one message.
func (p *peer) say(format string, args ...any) {
	p.t.Helper()
	if err := p.write(fmt.Sprintf(format, args...)); err != nil {
		p.t.Fatal(err)
	}
}

// hear is the next message that is no ping.
func (p *peer) hear() object {
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

// expect is hear, and checks the fields given.
func (p *peer) expect(want object) object {
	p.t.Helper()
	got := p.hear()
	for k, v := range want {
		if fmt.Sprint(got[k]) != fmt.Sprint(v) {
			p.t.Fatalf("%s is %v, want %v, in %v", k, got[k], v, got)
		}
	}
	return got
}

// ends waits for the end of the connection; what comes before is returned.
func (p *peer) ends() (last []object) {
	p.t.Helper()
	for {
		raw, err := p.read()
		if err != nil {
			return last
		}
		last = append(last, decode(p.t, raw))
	}
}

// dashed makes the name of a test, or of a way in, one that a client may have.
func dashed(name string) string { return strings.NewReplacer(" ", "-", "/", "-").Replace(name) }

// secretOf is by what the tests' clients without a user get their ids again.
func secretOf(client string) string { return "the secret of client " + client }

// connect says who the client is and returns the answer.
func (p *peer) connect(client, user string) object {
	p.t.Helper()
	p.say(`{"type":"connect","client":%q,"user":%q,"secret":%q,"ref":1}`, client, user, secretOf(client))
	return p.expect(object{"type": "connected", "client": wire.ClientID(user, client), "ref": 1})
}

// subscribe follows a channel from now on.
func (p *peer) subscribe(channel string) object {
	p.t.Helper()
	p.say(`{"type":"subscribe","channel":%q,"ref":2}`, channel)
	return p.expect(object{"type": "subscribed", "channel": channel, "ref": 2})
}
