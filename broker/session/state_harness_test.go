package session_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"switchboard/broker/session"
	"switchboard/broker/transport"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// newStateHarness is newHarness for tests of states: subscribers receive what others change.
func newStateHarness(t *testing.T, o session.Options) *harness {
	h := newHarness(t, o)
	h.hints = true
	return h
}

// device is another client of the harness.
type device struct {
	h        *harness
	client   string
	sock     *socket
	receiver transport.Receiver
}

// connectDevice connects another client. A device of the same name has the same id.
func (h *harness) connectDevice(client string) *device {
	d := &device{h: h, client: client, sock: newSocket()}
	request := wire.Request{Type: wire.TypeConnect, Client: client, Secret: "the secret of " + client}
	h.onLoop(func() { d.receiver = h.Accept(h.loop, d.sock, []wire.Request{request}) })
	h.settle()
	if events := d.received(); len(events) == 0 || events[0].Type != wire.TypeConnected {
		h.t.Fatalf("%s is not connected: %+v", client, events)
	}
	return d
}

func (d *device) send(format string, args ...any) {
	d.h.onLoop(func() { receive(d.receiver, format, args...) })
	d.h.settle()
}

// received returns the events that were written since the last call.
func (d *device) received() (events []wire.Event) {
	d.h.onLoop(func() { events, d.sock.written = d.sock.written, nil })
	return events
}

// expect sends a message and returns the events that follow. want lists their types, as types does.
func (d *device) expect(want, format string, args ...any) []wire.Event {
	d.h.t.Helper()
	d.send(format, args...)
	events := d.received()
	if got := types(events); got != want {
		d.h.t.Fatalf("%s: %s %+v, want %s", fmt.Sprintf(format, args...), got, events, want)
	}
	return events
}

// end ends the connection.
func (d *device) end() {
	d.h.onLoop(d.receiver.Closed)
	d.h.settle()
}

// setFull says whether the next write of the device fills its socket.
func (d *device) setFull(full bool) {
	d.h.onLoop(func() { d.sock.full, d.sock.backlogged = full, false })
}

// drain has the peer read everything. full says whether the next write fills the socket again.
func (d *device) drain(full bool) {
	d.h.onLoop(func() {
		d.sock.full, d.sock.backlogged = full, false
		d.receiver.Writable()
	})
	d.h.settle()
}

// stored returns the live fields of a channel as the store has them.
func (h *harness) stored(channel string) map[string]state.Shown {
	h.t.Helper()
	o := h.queue.ReadStates(h.t.Context(), []queue.StateRead{{Channel: channel}})[0]
	if o.Err != nil {
		h.t.Fatal(o.Err)
	}
	fields := make(map[string]state.Shown)
	for _, f := range o.Value.Fields {
		fields[f.Name] = f.Show()
	}
	return fields
}

// wantFields checks which fields a channel has: name=value, with a star if the field is away.
func (h *harness) wantFields(channel, want string) {
	h.t.Helper()
	if got := show(h.stored(channel)); got != want {
		h.t.Errorf("channel %s has %s, want %s", channel, got, want)
	}
}

func show(fields map[string]state.Shown) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		away := ""
		if fields[name].Away {
			away = "*"
		}
		list = append(list, name+"="+string(fields[name].Value)+away)
	}
	return strings.Join(list, " ")
}

// follow passes events to a follower of one channel.
func follow(t testing.TB, f *state.Follower, events []wire.Event) {
	t.Helper()
	for _, e := range events {
		switch {
		case e.Type == wire.TypeState && !e.Ref.Set:
			if err := f.Page(*e.ID, e.More, e.StateEvent); err != nil {
				t.Fatal(err)
			}
		case e.Type == wire.TypeMessage:
			f.Message(*e.ID, e.StateEvent)
		case e.Type == wire.TypeGap:
			f.Gap()
		}
	}
}

// wantFollowed checks that a follower has the fields of the store.
func (h *harness) wantFollowed(channel string, f *state.Follower) {
	h.t.Helper()
	if !f.Held() {
		h.t.Error("the last page has not arrived")
	}
	if got, want := show(f.Map().Fields), show(h.stored(channel)); got != want {
		h.t.Errorf("the client has %.200s, the store %.200s", got, want)
	}
}

// fieldsOf returns the fields of an event, without ids and ends: name=value.
func fieldsOf(t *testing.T, e wire.Event) string {
	t.Helper()
	if e.StateEvent == nil || e.Fields == nil {
		return "none"
	}
	fields, err := state.ParseFields(e.Fields)
	if err != nil {
		t.Fatal(err)
	}
	shown := make(map[string]state.Shown)
	for name, f := range fields {
		if shown[name] = (state.Shown{Value: []byte("absent")}); f != nil {
			shown[name] = *f
		}
	}
	return show(shown)
}

// large returns a JSON string of n bytes.
func large(n int) json.RawMessage { return []byte(`"` + strings.Repeat("x", n-2) + `"`) }

// errStore is the error of a store that cannot be reached.
var errStore = errors.New("the store cannot be reached")
