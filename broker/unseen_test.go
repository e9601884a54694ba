package broker_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/broker"
	"switchboard/broker/extension"
	"switchboard/broker/session"
	"switchboard/internal/wire"
	"switchboard/registry"
)

// withEcho adds an extension whose client call returns the user.
func withEcho(o *broker.Options) {
	withClub(o)
	o.Extensions = append(o.Extensions, func(*extension.Host) (extension.Extension, error) {
		return extension.Extension{Name: "echo", ClientCalls: map[string]session.Method{
			"echo": func(_ context.Context, by session.Caller, _ json.RawMessage) (any, error) { return by.User, nil },
		}}, nil
	})
}

// TestUnseenServer calls a server that has joined after the only beat of the caller.
func TestUnseenServer(t *testing.T) {
	for name, call := range map[string]func(t *testing.T, old *extension.Host, i instance, server string, c *testClient){
		"unsubscribe": func(t *testing.T, old *extension.Host, _ instance, _ string, c *testClient) {
			if err := old.Unsubscribe(t.Context(), "amy", "club:chess", wire.Errorf(wire.Forbidden, "the club is closed")); err != nil {
				t.Fatal(err)
			}
			c.expect(object{"type": "unsubscribed", "channel": "club:chess", "code": "forbidden"})
		},
		"disconnect": func(t *testing.T, old *extension.Host, _ instance, _ string, c *testClient) {
			if err := old.Disconnect(t.Context(), "amy"); err != nil {
				t.Fatal(err)
			}
			c.untilClosed()
		},
		"disconnect a client": func(t *testing.T, old *extension.Host, _ instance, _ string, c *testClient) {
			if err := old.DisconnectClient(t.Context(), "amy/phone"); err != nil {
				t.Fatal(err)
			}
			c.untilClosed()
		},
		"call as a client": func(t *testing.T, old *extension.Host, _ instance, server string, _ *testClient) {
			var user string
			if err := old.CallAs(t.Context(), server, "amy/phone", "echo", nil, &user); err != nil || user != "amy" {
				t.Errorf("the call as amy returned %q, %v", user, err)
			}
		},
		"disconnect over HTTP": func(t *testing.T, _ *extension.Host, i instance, _ string, c *testClient) {
			if status, body := i.call(t, "POST", "/v1/users/amy/disconnect", ""); status != http.StatusOK || body["disconnected"] != json.Number("1") {
				t.Errorf("%d %v", status, body)
			}
			c.untilClosed()
		},
		"describe over HTTP": func(t *testing.T, _ *extension.Host, i instance, _ string, _ *testClient) {
			if status, body := i.call(t, "GET", "/v1/clients/amy%2Fphone", ""); status != http.StatusOK || body["online"] != true {
				t.Errorf("%d %v", status, body)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := redisStore(t, shared.Client(t), time.Hour)
			change := func(o *broker.Options) {
				o.Timing.Beat = time.Hour
				withEcho(o)
			}
			old := start(t, s, change)
			old.awaitReady(t, http.StatusOK)
			host := hosts["b"]
			unseen := start(t, s, change)
			unseen.awaitReady(t, http.StatusOK)
			amy := dialLines(t, net.Dialer{}, unseen.TCP)
			amy.connect("phone", "amy")
			if status, body := unseen.call(t, "PUT", "/v1/clubs/chess/members/amy", ""); status != http.StatusOK {
				t.Fatalf("%d %v", status, body)
			}
			amy.subscribe("club:chess")
			if old.Live(unseen.ID()) {
				t.Fatal("the old broker has seen the other one")
			}
			call(t, host, old, unseen.ID(), amy)
		})
	}
}

// TestUnreachableServer checks that a server with a lease that does not answer is an error, and
// that nothing is to do for a server without one.
func TestUnreachableServer(t *testing.T) {
	s, _ := redisStore(t, shared.Client(t), time.Hour)
	i := start(t, s, func(o *broker.Options) {
		o.Timing.Beat = time.Hour
		withEcho(o)
	})
	i.awaitReady(t, http.StatusOK)
	host, why := hosts["b"], wire.Errorf(wire.Forbidden, "the club is closed")
	if err := s.registry.Join(t.Context(), registry.Server{ID: "silent", Host: "127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 { // they share the read of the live servers
		wg.Go(func() {
			err := host.UnsubscribeClient(t.Context(), "silent", "amy/phone", "club:chess", why)
			if err == nil || !strings.Contains(err.Error(), "silent") {
				t.Errorf("a server that cannot be reached: %v", err)
			}
			if err := host.UnsubscribeClient(t.Context(), "dead", "amy/phone", "club:chess", why); err != nil {
				t.Errorf("a server without a lease: %v", err)
			}
		})
	}
	wg.Wait()
	err := host.CallAs(t.Context(), "dead", "amy/phone", "echo", nil, new(string))
	if e, ok := err.(*wire.Error); !ok || e.Code != wire.NotFound {
		t.Errorf("a call as a client of a server without a lease: %v", err)
	}
}
