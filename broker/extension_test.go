package broker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"switchboard/broker"
	"switchboard/broker/api"
	"switchboard/broker/extension"
	"switchboard/broker/namespace"
	"switchboard/broker/session"
	"switchboard/internal/await"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// club is an extension whose channels only members may use. A member has the field m/<user>.
type club struct{ *extension.Host }

func newClub(h *extension.Host) (extension.Extension, error) {
	c := club{h}
	return extension.Extension{
		Name:    "club",
		Methods: map[string]session.Method{"club.join": c.join, "club.found": c.found},
		Calls: []api.Call{
			{Pattern: "PUT /v1/clubs/{club}/members/{user}", Scope: api.ScopePush, Handle: c.admit},
			{Pattern: "DELETE /v1/clubs/{club}/members/{user}", Scope: api.ScopePush, Handle: c.dismiss},
			{Pattern: "GET /v1/clubs/{club}", Public: true, Handle: c.members},
		},
		Channels: []extension.ChannelKind{{
			Rule: namespace.Rule{
				Name: "club:*", Subscribe: namespace.Users, State: namespace.Users, History: namespace.Users, Publish: namespace.Users,
				Needs: "m/{user}", Fields: []namespace.FieldRule{{Pattern: "g/*", Write: namespace.Users}},
			},
			Authorize: c.authorize,
		}},
	}, nil
}

func (c club) authorize(ctx context.Context, _, user, channel string) error {
	fields, err := c.ReadState(ctx, channel, "m/"+user)
	if err == nil && len(fields) == 0 {
		err = wire.Errorf(wire.Forbidden, "channel %s: not a member", channel)
	}
	return err
}

func (c club) admit(r *http.Request) (any, error) {
	user, err := api.PathName(r, "user")
	if err != nil {
		return nil, err
	}
	u := &state.Update{Ops: []state.Op{{Field: "m/" + user, Kind: state.Set, Value: []byte("true")}}, Writer: state.BackendHolder}
	done, err := c.Change(r.Context(), "club:"+r.PathValue("club"), u, extension.ChangeOptions{})
	return map[string]int64{"id": done.ID}, err
}

// join makes the client's user a member while the client is connected.
func (c club) join(ctx context.Context, by session.Caller, data json.RawMessage) (any, error) {
	var request struct {
		Club string `json:"club"`
	}
	if err := json.Unmarshal(data, &request); err != nil {
		return nil, wire.JSONError(err)
	}
	channel := "club:" + request.Club
	return map[string]string{"welcome": by.User}, by.Own(ctx, channel, func(conn state.Connection) error {
		_, err := c.Change(ctx, channel, &state.Update{
			Ops:    []state.Op{{Field: "m/" + by.User, Kind: state.Set, Value: []byte("true"), Own: state.Own}},
			Writer: state.UserHolder(by.User), Client: conn.Client, Generation: conn.Generation, Server: conn.Server,
		}, extension.ChangeOptions{})
		return err
	})
}

// found fails if the club exists.
func (c club) found(ctx context.Context, _ session.Caller, data json.RawMessage) (any, error) {
	_, err := c.Change(ctx, "club:"+string(bytes.Trim(data, `"`)), &state.Update{
		Ops: []state.Op{{Field: "m/founder", Kind: state.Set, Value: []byte("1")}}, If: []state.Condition{{Field: "m/founder", Kind: state.IsAbsent}},
		Writer: state.BackendHolder,
	}, extension.ChangeOptions{})
	return nil, err
}

func (c club) dismiss(r *http.Request) (any, error) {
	u := &state.Update{Ops: []state.Op{{Field: "m/" + r.PathValue("user"), Kind: state.Delete}}, Writer: state.BackendHolder}
	done, err := c.Change(r.Context(), "club:"+r.PathValue("club"), u, extension.ChangeOptions{})
	return map[string]int64{"id": done.ID}, err
}

func (c club) members(r *http.Request) (any, error) {
	list, err := c.ReadGroup(r.Context(), "club:"+r.PathValue("club"), "m/")
	return map[string]int{"members": len(list)}, err
}

// TestExtension checks an extension over memory and Redis: calls with and without a key, channels
// with an authorizer, and the end of a subscription on another server.
func TestExtension(t *testing.T) {
	for name, open := range map[string]func(*testing.T) []instance{
		"memory": func(t *testing.T) []instance {
			i := start(t, memoryStore(queue.Options{}), withClub)
			return []instance{i, i}
		},
		"redis": func(t *testing.T) []instance {
			s, _ := redisStore(t, shared.Client(t), testBeat)
			change := func(o *broker.Options) {
				o.Timing.Beat = testBeat
				withClub(o)
			}
			list := []instance{start(t, s, change), start(t, s, change)}
			for _, i := range list {
				await.True(t, "the broker sees both", func() bool { return len(i.Servers()) == 2 })
				i.awaitReady(t, http.StatusOK)
			}
			return list
		},
	} {
		t.Run(name, func(t *testing.T) { testExtension(t, open(t)) })
	}
}

func withClub(o *broker.Options) {
	o.Extensions = []func(*extension.Host) (extension.Extension, error){newClub, hostOf(o)}
}

// hosts are the hosts of the brokers that a test has made.
var hosts = map[string]*extension.Host{}

func hostOf(o *broker.Options) func(*extension.Host) (extension.Extension, error) {
	return func(h *extension.Host) (extension.Extension, error) {
		hosts[o.Name] = h
		return extension.Extension{Name: "host"}, nil
	}
}

func testExtension(t *testing.T, list []instance) {
	amy, bob := dialLines(t, net.Dialer{}, list[0].TCP), dialLines(t, net.Dialer{}, list[0].TCP)
	amy.connect("phone", "amy")
	bob.connect("phone", "bob")
	if status, body := list[1].call(t, "PUT", "/v1/clubs/chess/members/amy", ""); status != http.StatusOK {
		t.Fatalf("%d %v", status, body)
	}
	amy.subscribe("club:chess")
	for _, request := range []string{
		`{"type":"subscribe","channel":"club:chess","ref":3}`,
		`{"type":"history","channel":"club:chess","ref":3}`,
		`{"type":"state","channel":"club:chess","ref":3}`,
		`{"type":"publish","channel":"club:chess","data":1,"ref":3}`,
	} {
		bob.send("%s", request)
		bob.expect(object{"type": "error", "code": "forbidden", "ref": 3})
	}
	amy.send(`{"type":"publish","channel":"club:chess","data":1,"ref":3}`)
	for got := ""; got != "published"; {
		got = amy.receive()["type"].(string)
	}
	if status, body := list[1].call(t, "DELETE", "/v1/clubs/chess/members/amy", ""); status != http.StatusOK {
		t.Fatalf("%d %v", status, body)
	}
	for _, change := range []string{`"data":1`, `"set":{"g/x":1}`} {
		amy.send(`{"type":"publish","channel":"club:chess",%s,"ref":4}`, change)
		for got := (object{}); fmt.Sprint(got["ref"]) != "4"; {
			if got = amy.receive(); got["type"] == "published" {
				t.Errorf("%s of a former member was accepted", change)
			}
		}
	}
	why := wire.Errorf(wire.Forbidden, "the club is closed")
	if err := hosts["b"].Unsubscribe(t.Context(), "amy", "club:chess", why); err != nil {
		t.Fatal(err)
	}
	for got := (object{}); got["type"] != "unsubscribed"; got = amy.receive() {
		if got["code"] != nil {
			t.Fatalf("received %v", got)
		}
	}
}

// TestNewServer calls for clients of a server that the called server does not know yet: its next
// beat comes after the end of the test.
func TestNewServer(t *testing.T) {
	s, _ := redisStore(t, shared.Client(t), time.Hour)
	options := func(o *broker.Options) {
		withClub(o)
		o.Timing.Beat = time.Hour
	}
	older := start(t, s, options)
	older.awaitReady(t, http.StatusOK)
	host := hosts["b"]
	newer := start(t, s, options)
	newer.awaitReady(t, http.StatusOK)
	for name, end := range map[string]func() error{
		"unsubscribed": func() error {
			return host.Unsubscribe(t.Context(), "amy", "news", wire.Errorf(wire.Forbidden, "no news today"))
		},
		"closing": func() error {
			status, body := older.call(t, "POST", "/v1/clients/amy/closing/disconnect", "")
			if status != http.StatusOK || fmt.Sprint(body["disconnected"]) != "1" {
				return fmt.Errorf("%d %v", status, body)
			}
			return nil
		},
	} {
		amy := dialLines(t, net.Dialer{}, newer.TCP)
		amy.connect(name, "amy")
		amy.subscribe("news")
		if err := end(); err != nil {
			t.Error(err)
		}
		amy.expect(object{"type": name})
	}
}

// TestMethods checks the methods of an extension: an answer, a refusal with the current fields, the
// end of an owner, and an unknown method.
func TestMethods(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), withClub)
	amy, bob := dialLines(t, net.Dialer{}, i.TCP), dialLines(t, net.Dialer{}, i.TCP)
	amy.connect("phone", "amy")
	bob.connect("phone", "bob")
	amy.send(`{"type":"request","method":"club.join","data":{"club":"go"},"ref":3}`)
	amy.expect(object{"type": "reply", "ref": 3, "data": map[string]any{"welcome": "amy"}})
	amy.subscribe("club:go")
	amy.send(`{"type":"request","method":"club.leave","ref":4}`)
	amy.expect(object{"type": "error", "ref": 4, "code": "not_found"})
	bob.send(`{"type":"request","method":"club.join","data":{"club":"go"},"ref":3}`)
	bob.expect(object{"type": "reply", "ref": 3})
	for ref, want := range []string{"reply", "error"} {
		bob.send(`{"type":"request","method":"club.found","data":"go","ref":%d}`, ref)
		got := bob.expect(object{"type": want, "ref": ref})
		if want == "error" && (got["code"] != "conflict" || got["fields"].(object)["m/founder"] == nil) {
			t.Errorf("the refusal is %v", got)
		}
	}
	amy.close()
	await.True(t, "the member has left", func() bool {
		_, body := i.call(t, "GET", "/v1/clubs/go", "")
		return fmt.Sprint(body["members"]) == "2" // bob, and the founder
	})
}

// TestPublicCall checks a call without an API key: other calls need one, and only pages of allowed
// origins may make it.
func TestPublicCall(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) {
		withClub(o)
		o.Access.Keys = keys(t, keyOne)
		o.Access.Origins.Patterns = []string{"https://app.example.com"}
	})
	if status, _ := i.call(t, "PUT", "/v1/clubs/chess/members/amy", ""); status != http.StatusUnauthorized {
		t.Errorf("a call without a key: %d", status)
	}
	for origin, want := range map[string]int{"": 200, "https://app.example.com": 200, "https://evil.example.com": 403} {
		for _, method := range []string{"GET", "OPTIONS"} {
			req, err := http.NewRequestWithContext(t.Context(), method, "http://"+i.HTTP+"/v1/clubs/chess", nil)
			if err != nil {
				t.Fatal(err)
			}
			if origin != "" {
				req.Header.Set("Origin", origin)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if method == "OPTIONS" && want == 200 {
				want = http.StatusNoContent
				if allow := resp.Header.Get("Access-Control-Allow-Headers"); !strings.Contains(allow, "If-Match") {
					t.Errorf("a page may send %q", allow)
				}
			}
			if got := resp.Header.Get("Access-Control-Allow-Origin"); resp.StatusCode != want || want != 403 && got != origin {
				t.Errorf("%s from %q: %d, allowed for %q", method, origin, resp.StatusCode, got)
			}
		}
	}
}

// TestExtensionErrors checks the extensions that New refuses.
func TestExtensionErrors(t *testing.T) {
	bad := errors.New("the disk is full")
	for want, o := range map[string]broker.Options{
		"the disk is full": {Extensions: []func(*extension.Host) (extension.Extension, error){
			func(*extension.Host) (extension.Extension, error) { return extension.Extension{}, bad },
		}},
		"club:* and club:* match the same channels": {
			Access:     broker.AccessOptions{Namespaces: rules(t, namespace.Rule{Name: "club:*"})},
			Extensions: []func(*extension.Host) (extension.Extension, error){newClub},
		},
		"club: club has the method club.": {
			Extensions: []func(*extension.Host) (extension.Extension, error){newClub, newClub},
		},
	} {
		s := memoryStore(queue.Options{})
		o.Store = broker.StoreOptions{Registry: s.registry, Queue: s.queue}
		if _, err := broker.New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New returned %v, want %s", err, want)
		}
	}
}
