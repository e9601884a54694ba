package room_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"switchboard/broker/extension"
	"switchboard/client"
	clientroom "switchboard/client/room"
	"switchboard/internal/await"
	"switchboard/kit/kittest"
	"switchboard/kit/room"
)

// wiretap is a connection whose lines a test reads as they are.
type wiretap struct {
	*testing.T
	out io.Writer

	mu    sync.Mutex // guards the field below
	lines []string
}

// dial opens a TCP connection of a user.
func dial(t *testing.T, b *kittest.Broker, user string) *wiretap {
	t.Helper()
	conn, err := net.Dial("tcp", b.TCP)
	if err != nil {
		t.Fatal(err)
	}
	tap := &wiretap{T: t, out: conn}
	tap.follow(conn)
	tap.send(`{"type":"connect","client":"tap","user":"` + user + `"}`)
	return tap
}

// openEvents opens a connection of Server-Sent Events.
func openEvents(t *testing.T, b *kittest.Broker, query string) *wiretap {
	t.Helper()
	resp, err := http.Get("http://" + b.HTTP + "/sse?" + query)
	if err != nil {
		t.Fatal(err)
	}
	tap := &wiretap{T: t}
	tap.follow(resp.Body)
	return tap
}

// follow reads lines until the test ends.
func (tap *wiretap) follow(r io.ReadCloser) {
	done := make(chan struct{})
	tap.Cleanup(func() { _ = r.Close(); <-done })
	go func() {
		defer close(done)
		for lines := bufio.NewScanner(r); lines.Scan(); {
			tap.mu.Lock()
			tap.lines = append(tap.lines, lines.Text())
			tap.mu.Unlock()
		}
	}()
}

func (tap *wiretap) send(line string) {
	tap.Helper()
	if _, err := io.WriteString(tap.out, line+"\n"); err != nil {
		tap.Fatal(err)
	}
}

// count returns how many lines have all of the parts.
func (tap *wiretap) count(parts ...string) (n int) {
	tap.mu.Lock()
	defer tap.mu.Unlock()
	for _, line := range tap.lines {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			n++
		}
	}
	return n
}

// receives waits for a line with all of the parts, and checks that there is one.
func (tap *wiretap) receives(parts ...string) {
	tap.Helper()
	await.True(tap.T, fmt.Sprint("a line with ", parts), func() bool { return tap.count(parts...) > 0 })
	if n := tap.count(parts...); n != 1 {
		tap.Errorf("%d lines have %q", n, parts)
	}
}

// hides checks that no line has any of the words.
func (tap *wiretap) hides(words ...string) {
	tap.Helper()
	for _, word := range words {
		if tap.count(word) > 0 {
			tap.Errorf("the lines have %q: %q", word, tap.lines)
		}
	}
}

// TestPresence checks that the presence of a room shows numbers, on sockets and in events: one for
// all devices of a player, and nothing of spectators. The backend sees the users, too.
func TestPresence(t *testing.T) {
	each(t, 2, func(w *world) {
		ctx := w.Context()
		phone, _ := w.device(0, "amy", "phone")
		tablet, _ := w.device(1, "amy", "tablet")
		bob := w.At(1).Connect(w.T, "bob", nil)
		arena := w.create(clientroom.New(phone), clientroom.CreateOptions{ID: "arena", Mode: "battle"})
		eve, fay := dial(w.T, w.At(0), "eve"), openEvents(w.T, w.At(1), "channel=room:arena&presence=true&client=tap&user=fay")
		eve.send(`{"type":"subscribe","ref":1,"channel":"room:arena","presence":true,"state":true}`)
		eve.receives(`"type":"subscribed"`)
		fay.receives(`"type":"subscribed"`)
		w.join(clientroom.New(tablet), "arena", 1)
		w.join(clientroom.New(bob), "arena", 2)
		for _, tap := range []*wiretap{eve, fay} {
			tap.receives(`"type":"join","client":"2","channel":"room:arena"}`)
		}
		if err := bob.ShowHere("room:arena", "typing"); err != nil {
			w.Fatal(err)
		}
		for _, tap := range []*wiretap{eve, fay} {
			tap.receives(`"type":"here"`, `"client":"2"`, `"data":"typing"`)
		}
		await.True(w.T, "the backend sees two members", func() bool {
			return w.http(200, "GET", "/v1/channels/room:arena/presence", nil)["count"] == 2.0
		})
		eve.send(`{"type":"presence","ref":2,"channel":"room:arena"}`)
		eve.receives(`"ref":2,`, `"count":2,"users":2`, `{"client":"1","since":`, `{"client":"2","since":`, `"alias":""`)
		eve.send(`{"type":"here","ref":3,"channel":"room:arena","data":1}`)
		eve.receives(`"ref":3,`, `"code":"forbidden"`)
		if got := fmt.Sprint(w.http(200, "GET", "/v1/channels/room:arena/presence?limit=1", nil)); !strings.Contains(got, "client:1") || !strings.Contains(got, "user:amy") {
			w.Errorf("the backend sees %s", got)
		}
		if err := phone.Unsubscribe(ctx, arena.Channel); err != nil {
			w.Fatal(err)
		}
		if err := tablet.Unsubscribe(ctx, arena.Channel); err != nil {
			w.Fatal(err)
		}
		w.http(200, "POST", "/v1/rooms/arena/kick", object{"n": 2})
		for _, tap := range []*wiretap{eve, fay} {
			tap.receives(`"type":"leave","client":"1","channel":"room:arena"}`)
			tap.receives(`"type":"leave","client":"2","channel":"room:arena"}`)
			tap.hides("amy", "bob", "phone", "tablet", "device")
		}
	})
}

// TestSpectatorJoins checks that a spectator enters the presence with a number, which is the alias
// of its client, without another subscription.
func TestSpectatorJoins(t *testing.T) {
	each(t, 2, func(w *world) {
		w.create(w.connect(0, "amy"), clientroom.CreateOptions{ID: "arena", Mode: "battle"})
		eve := dial(w.T, w.At(1), "eve")
		eve.send(`{"type":"subscribe","ref":1,"channel":"room:arena","presence":true,"state":true}`)
		eve.receives(`"type":"subscribed"`)
		eve.send(`{"type":"request","ref":2,"method":"room.join","data":{"room":"arena"}}`)
		eve.receives(`"type":"reply"`, `"n":2`)
		eve.receives(`"type":"join","client":"2","channel":"room:arena"}`)
		eve.send(`{"type":"presence","ref":3,"channel":"room:arena"}`)
		eve.receives(`"ref":3,`, `{"client":"1","since":`, `{"client":"2","since":`, `"alias":"2"`)
		eve.send(`{"type":"here","channel":"room:arena","data":{"x":1}}`)
		eve.send(`{"type":"request","ref":4,"method":"room.leave","data":{"room":"arena"}}`)
		eve.receives(`"type":"unsubscribed"`)
		await.True(w.T, "one member is left", func() bool {
			return w.http(200, "GET", "/v1/channels/room:arena/presence", nil)["count"] == 1.0
		})
		eve.hides("amy", `"type":"error"`)
	})
}

// TestPresenceAfterKill checks that the number of a player leaves when the lease of the broker with
// its last device ends, and not before.
func TestPresenceAfterKill(t *testing.T) {
	t.Parallel() // it mostly waits
	for name, newClient := range map[string]func(testing.TB) kittest.Store{
		"redis":   func(tb testing.TB) kittest.Store { return kittest.NewRedis(kittest.Redis.Client(tb)) },
		"cluster": func(tb testing.TB) kittest.Store { return kittest.NewRedis(kittest.Cluster.Client(tb)) },
	} {
		t.Run(name, func(t *testing.T) {
			rooms := kittest.With(func(h *extension.Host) (extension.Extension, error) {
				r, err := room.New(h, room.Options{Modes: modes()})
				if err != nil {
					return extension.Extension{}, err
				}
				return r.Extension(), nil
			})
			first := newClient(t)
			other := kittest.OpenRedis(newClient(t).Redis, first.Prefix)
			doomed, b := first.Start(t, rooms), other.Start(t, rooms)
			connect := func(at *kittest.Broker, user, device string) *clientroom.Rooms {
				return clientroom.New(at.Connect(t, user, func(o *client.Options) { o.Client = device }))
			}
			ctx := t.Context()
			if _, err := connect(b, "amy", "phone").Create(ctx, clientroom.CreateOptions{ID: "arena", Mode: "battle"}); err != nil {
				t.Fatal(err)
			}
			eve := dial(t, b, "eve")
			eve.send(`{"type":"subscribe","channel":"room:arena","presence":true}`)
			eve.receives(`"type":"subscribed"`)
			for user, device := range map[string]string{"amy": "tablet", "bob": "phone"} {
				if _, err := connect(doomed, user, device).Join(ctx, "arena", clientroom.JoinOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			eve.receives(`"type":"join","client":"2"`) // else the broker may end before the other one hears of it
			await.True(t, "two members are there", func() bool {
				return b.OK(t, "GET", "/v1/channels/room:arena/presence", "")["count"] == 2.0
			})
			_ = first.Redis.Close() // without a word to the store
			doomed.Stop()
			eve.receives(`"type":"leave","client":"2","channel":"room:arena"}`)
			if page := fmt.Sprint(b.OK(t, "GET", "/v1/channels/room:arena/presence", "")); !strings.Contains(page, "client:1") || !strings.Contains(page, "count:1") {
				t.Errorf("the page is %s", page)
			}
			if eve.count(`"client":"1"`, "leave") > 0 {
				t.Error("the player with a device on the other broker has left")
			}
			eve.hides("amy", "bob")
		})
	}
}
