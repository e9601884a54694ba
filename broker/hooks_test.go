package broker_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"switchboard/broker"
	"switchboard/broker/hook"
	"switchboard/broker/namespace"
	"switchboard/internal/await"
	"switchboard/internal/signedreq"
	"switchboard/queue"
)

// backend answers hook calls with the text that answer returns. "hang" does not answer, and "fail"
// answers with status 500.
type backend struct {
	*httptest.Server
	questions chan hook.Question
	answer    atomic.Pointer[func(hook.Question) string]
}

func (b *backend) decide(answer func(hook.Question) string) { b.answer.Store(&answer) }

func newBackend(t *testing.T) *backend {
	t.Helper()
	b := &backend{questions: make(chan hook.Question, 1000)}
	b.decide(func(hook.Question) string { return `{"allow":true}` })
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q hook.Question
		if err := signedreq.Decode(r, "shared with the backend", &q); err != nil {
			t.Error(err)
		}
		b.questions <- q
		switch text := (*b.answer.Load())(q); text {
		case "hang":
			<-r.Context().Done()
		case "fail":
			w.WriteHeader(http.StatusInternalServerError)
		default:
			_, _ = io.WriteString(w, text)
		}
	}))
	t.Cleanup(b.Close)
	return b
}

func (b *backend) hooks() hook.Options {
	return hook.Options{Connect: b.URL, Subscribe: b.URL, Secrets: []string{"shared with the backend"}, Timeout: 5 * time.Second}
}

func TestHooksDecide(t *testing.T) {
	b := newBackend(t)
	b.decide(func(q hook.Question) string {
		if q.Hook == hook.Connect {
			return `{"allow":true,"user":"alice","info":{"name":"Alice"}}`
		}
		return fmt.Sprintf(`{"allow":%v,"reason":"members only"}`, q.Channel == "open")
	})
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) { o.Access.Hooks = b.hooks() })
	overAllTransports(t, func(t *testing.T, dial func(instance) *testClient) {
		p := dial(i)
		// Subscribes that arrive while the backend decides about the connect wait for its answer.
		p.send(`{"type":"connect","client":"phone","info":{"name":"?"},"ref":1}`)
		p.send(`{"type":"subscribe","channel":"closed","ref":2}`)
		p.send(`{"type":"subscribe","channel":"open","presence":true,"ref":3}`)
		p.send(`{"type":"subscribe","channel":"$user:bob","ref":4}`)
		p.expect(object{"type": "connected", "user": "alice", "ref": 1})
		p.expect(object{"type": "error", "code": "forbidden", "message": "channel closed: not allowed to subscribe: members only", "ref": 2})
		p.expect(object{"type": "subscribed", "channel": "open", "ref": 3})
		p.expect(object{"type": "error", "code": "forbidden", "ref": 4})
		for _, want := range []hook.Question{
			{Hook: hook.Connect, Client: "phone", Info: json.RawMessage(`{"name":"?"}`)},
			{Hook: hook.Subscribe, Client: "alice/phone", User: "alice", Info: json.RawMessage(`{"name":"Alice"}`), Channel: "closed"},
			{Hook: hook.Subscribe, Client: "alice/phone", User: "alice", Info: json.RawMessage(`{"name":"Alice"}`), Channel: "open"},
			{Hook: hook.Subscribe, Client: "alice/phone", User: "alice", Info: json.RawMessage(`{"name":"Alice"}`), Channel: "$user:bob"},
		} {
			got := <-b.questions
			if !strings.HasPrefix(got.Address, "127.0.0.1:") {
				t.Errorf("address %q", got.Address)
			}
			if got.Address = ""; string(got.Info) != string(want.Info) || got.Hook != want.Hook ||
				got.Client != want.Client || got.User != want.User || got.Channel != want.Channel {
				t.Errorf("question %+v, want %+v", got, want)
			}
		}
		await.True(t, "presence has the info of the backend", func() bool {
			p.send(`{"type":"presence","channel":"open","ref":5}`)
			return strings.Contains(fmt.Sprint(p.expect(object{"type": "presence", "ref": 5})["clients"]), "Alice")
		})
		p.close()
		await.True(t, "the client is gone", func() bool {
			_, answer := i.call(t, "GET", "/v1/channels/open", "")
			return fmt.Sprint(answer["subscribers"]) == "0"
		})
	})
	if _, answer := i.call(t, "GET", "/v1/channels/closed", ""); fmt.Sprint(answer["servers"]) != "0" && fmt.Sprint(answer["servers"]) != "[]" {
		t.Errorf("a channel without permitted subscribers is bound: %v", answer)
	}
}

// TestHooksRecover: while the backend gives no valid answer all clients are refused, and afterwards
// accepted.
func TestHooksRecover(t *testing.T) {
	b := newBackend(t)
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) { o.Access.Hooks = b.hooks() })
	connected := dialWS(t, "ws://"+i.TCP+"/ws")
	connected.connect("connected", "")
	b.decide(func(hook.Question) string { return `no JSON` })
	p := dialLines(t, dialer, i.TCP)
	p.send(`{"type":"connect","client":"phone","ref":1}`)
	p.expect(object{"type": "error", "code": "unavailable", "ref": 1})
	last := p.untilClosed()
	if len(last) != 1 || last[0]["code"] != "overloaded" || last[0]["reconnect"] != true || last[0]["after_ms"] == nil {
		t.Errorf("the connection ended with %v", last)
	}
	connected.send(`{"type":"subscribe","channel":"news","ref":2}`)
	connected.expect(object{"type": "error", "code": "unavailable", "ref": 2})
	b.decide(func(hook.Question) string { return `{"allow":true}` })
	connected.subscribe("news")
	dialLines(t, dialer, i.TCP).connect("phone", "")
	b.decide(func(hook.Question) string { return `{"allow":false}` })
	p = dialLines(t, dialer, i.TCP)
	p.send(`{"type":"connect","client":"tab","ref":1}`)
	p.expect(object{"type": "error", "code": "forbidden", "ref": 1})
	if last := p.untilClosed(); len(last) != 1 || last[0]["code"] != "unauthorized" || last[0]["reconnect"] != false {
		t.Errorf("the connection ended with %v", last)
	}
	text := metricsOf(t, i)
	for _, want := range []string{
		`switchboard_hooks_total{hook="connect",outcome="allowed"} 2`, `switchboard_hooks_total{hook="connect",outcome="denied"} 1`,
		`switchboard_hooks_total{hook="connect",outcome="malformed"} 1`, `switchboard_hooks_total{hook="subscribe",outcome="malformed"} 1`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in the metrics", want)
		}
	}
}

// TestHooksFailClosed: no client is connected or subscribed unless the backend allows it. Connected
// clients stay connected.
func TestHooksFailClosed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer, code, end string
		reconnect         bool
	}{
		"denied":    {`{"allow":false,"reason":"no"}`, "forbidden", "unauthorized", false},
		"late":      {"hang", "unavailable", "overloaded", true},
		"failed":    {"fail", "unavailable", "overloaded", true},
		"malformed": {`{"allow":"yes"}`, "unavailable", "overloaded", true},
		"stopped":   {"", "unavailable", "overloaded", true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBackend(t)
			i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) {
				withAccessRules(t)(o)
				o.Access.Hooks = b.hooks()
				o.Access.Hooks.Timeout = 700 * time.Millisecond
			})
			connected := dialLines(t, dialer, i.TCP)
			alice := signed(t, jwt.MapClaims{"sub": "alice"})
			connected.send(`{"type":"connect","client":"connected","token":%q}`, alice)
			connected.expect(object{"type": "connected"})
			if b.decide(func(hook.Question) string { return tt.answer }); tt.answer == "" {
				b.Close()
			}
			p := dialLines(t, dialer, i.TCP)
			p.send(`{"type":"connect","client":"phone","token":%q,"ref":1}`, signed(t, jwt.MapClaims{"sub": "bob"}))
			p.expect(object{"type": "error", "code": tt.code, "ref": 1})
			if last := p.untilClosed(); len(last) != 1 || last[0]["code"] != tt.end || last[0]["reconnect"] != tt.reconnect {
				t.Errorf("the connection ended with %v", last)
			}
			connected.send(`{"type":"subscribe","channel":"chat:1","ref":2}`)
			connected.expect(object{"type": "error", "code": tt.code, "ref": 2})
			connected.send(`{"type":"subscribe","channel":"$user:alice","ref":3}`)
			connected.expect(object{"type": "error", "code": tt.code, "ref": 3})
			connected.send(`{"type":"refresh","token":%q,"ref":4}`, alice)
			connected.expect(object{"type": "error", "code": tt.code, "ref": 4})
			for path, want := range map[string]string{"users/bob": `"online":false`, "channels/chat:1": `"subscribers":0`, "users/alice": `"online":true`} {
				if _, body := i.callWithKey(t, keyOne, "GET", "/v1/"+path, ""); !strings.Contains(body, want) {
					t.Errorf("%s: %s", path, body)
				}
			}
			connected.send(`{"type":"publish","channel":"chat:1","data":1,"ref":5}`) // the connection is still open
			connected.expect(object{"type": "error", "code": "forbidden", "ref": 5})
		})
	}
}

// TestHooksAndTokens: a bad token is refused without a hook call. The backend cannot change the
// user that the token names. A refresh calls the hook again.
func TestHooksAndTokens(t *testing.T) {
	b := newBackend(t)
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) {
		withAccessRules(t)(o)
		o.Access.Hooks = b.hooks()
	})
	p := dialWS(t, "ws://"+i.HTTP+"/ws?token=bad&client=phone")
	p.untilClosed()
	b.decide(func(hook.Question) string { return `{"allow":true,"user":"root"}` })
	alice := signed(t, jwt.MapClaims{"sub": "alice", "info": map[string]any{"n": 1}})
	p = dialWS(t, "ws://"+i.HTTP+"/ws?client=phone&token="+alice)
	p.expect(object{"type": "error", "code": "unavailable"})
	if q := <-b.questions; q.User != "alice" || string(q.Info) != `{"n":1}` || q.Client != "alice/phone" {
		t.Errorf("asked %+v", q)
	}
	if len(b.questions) != 0 {
		t.Error("a bad token caused a hook call")
	}
	b.decide(func(q hook.Question) string { return fmt.Sprintf(`{"allow":%v}`, !q.Refresh) })
	p = dialWS(t, "ws://"+i.HTTP+"/ws?client=phone&token="+alice)
	p.expect(object{"type": "connected", "user": "alice"})
	p.send(`{"type":"refresh","token":%q,"ref":2}`, alice)
	p.expect(object{"type": "error", "code": "forbidden", "ref": 2})
	p.send(`{"type":"subscribe","channel":"admin","ref":3}`) // no namespace matches it
	p.expect(object{"type": "error", "code": "forbidden", "ref": 3})
	<-b.questions
	<-b.questions
	if len(b.questions) != 0 {
		t.Error("a subscribe that the namespaces refuse caused a hook call")
	}
}

// TestHangingHooks: hook calls that hang do not delay store calls.
func TestHangingHooks(t *testing.T) {
	b := newBackend(t)
	hang := make(chan struct{})
	release := sync.OnceFunc(func() { close(hang) })
	defer release()
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) {
		o.Access.Hooks = b.hooks()
		o.Access.Hooks.Concurrency, o.Access.Hooks.Timeout = 2, time.Minute
	})
	connected := dialWS(t, "ws://"+i.TCP+"/ws")
	connected.connect("connected", "")
	<-b.questions
	b.decide(func(hook.Question) string { <-hang; return `{"allow":true}` })
	var waiting []*testClient
	for n := range 300 { // more than the workers of the pool for store calls
		p := dialLines(t, dialer, i.TCP)
		p.send(`{"type":"connect","client":"c%d","ref":1}`, n)
		waiting = append(waiting, p)
	}
	<-b.questions
	<-b.questions
	connected.send(`{"type":"publish","channel":"news","data":1,"ref":7}`)
	connected.expect(object{"type": "published", "ref": 7})
	if len(b.questions) != 0 {
		t.Error("more hook calls at once than hooks.concurrency")
	}
	release()
	for _, p := range waiting {
		p.expect(object{"type": "connected"})
	}
}

// TestShutdownWaitsForHooks: a client that a hook admits after the shutdown would be bound without
// a server.
func TestShutdownWaitsForHooks(t *testing.T) {
	b := newBackend(t)
	hang := make(chan struct{})
	release := sync.OnceFunc(func() { close(hang) })
	defer release()
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) { o.Access.Hooks = b.hooks() })
	p := dialLines(t, dialer, i.TCP)
	p.connect("phone", "")
	<-b.questions
	b.decide(func(hook.Question) string { <-hang; return `{"allow":true}` })
	p.send(`{"type":"subscribe","channel":"news"}`)
	<-b.questions
	ended := make(chan error, 1)
	go func() { ended <- i.stop() }()
	p.untilClosed()
	select {
	case err := <-ended:
		t.Errorf("Run returned during a hook call, with %v", err)
	case <-time.After(200 * time.Millisecond): // long enough for a shutdown that does not wait
		release()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestReloadDuringHook: namespaces that are reloaded during a hook call about a user take effect.
func TestReloadDuringHook(t *testing.T) {
	b := newBackend(t)
	hang := make(chan struct{})
	release := sync.OnceFunc(func() { close(hang) })
	defer release()
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) { o.Access.Hooks = b.hooks() })
	p := dialLines(t, dialer, i.TCP)
	p.connect("phone", "alice")
	<-b.questions
	b.decide(func(hook.Question) string { <-hang; return `{"allow":true}` })
	p.send(`{"type":"subscribe","channel":"$user:bob","ref":2}`)
	<-b.questions
	if err := i.Reload(broker.AccessOptions{Namespaces: rules(t, namespace.Rule{Name: "a", Subscribe: namespace.Anyone})}); err != nil {
		t.Fatal(err)
	}
	release()
	p.expect(object{"type": "error", "code": "forbidden", "ref": 2})
}
