package presence

import (
	"encoding/json"
	"maps"

	"switchboard/internal/wire"
)

// show sets a client's value, "" to end it, as a session does.
func (n *node) show(client string, generation int64, value string) error {
	n.w.t.Helper()
	ready, err := n.SetHere(testChannel, client, generation, jsonOf(value))
	if ready {
		return err
	}
	n.w.check(n.LoadHere(n.w.t.Context(), testChannel, client))
	if ready, err = n.SetHere(testChannel, client, generation, jsonOf(value)); !ready {
		n.w.t.Error("a value is refused after LoadHere")
	}
	return err
}

// mustShow is show for a value that must be accepted.
func (n *node) mustShow(client string, generation int64, value string) {
	n.w.t.Helper()
	n.w.check(n.show(client, generation, value))
}

// jsonOf returns a value as JSON, or nil for none.
func jsonOf(value string) []byte {
	if value == "" {
		return nil
	}
	text, _ := json.Marshal(value)
	return text
}

// runFor lets seconds pass, with the ticks of all running servers.
func (w *world) runFor(seconds int) {
	for range seconds {
		w.waitASecond()
		for _, n := range w.nodes {
			if n.stopped == nil {
				n.Tick()
			}
		}
	}
	w.waitASecond()
}

// valueChanged applies a here event.
func (o *testWatcher) valueChanged(e wire.Event) {
	o.values++
	if e.Client == o.name || !o.knows[e.Client] || e.Channel != testChannel {
		o.t.Errorf("%s receives the value %+v; it knows the members %v", o.name, e, o.knows)
	}
	o.setValue(e.Client, e.Data)
}

func (o *testWatcher) setValue(client string, data json.RawMessage) {
	var value *string
	if err := json.Unmarshal(data, &value); err != nil {
		o.t.Errorf("value %s: %v", data, err)
	}
	if delete(o.here, client); value != nil {
		o.here[client] = *value
	}
}

// loadValues replaces the values by those of a page or a snapshot.
func (o *testWatcher) loadValues(members []wire.Member) {
	clear(o.here)
	for _, m := range members {
		if m.Here != nil && m.Client != o.name {
			o.setValue(m.Client, m.Here)
		}
	}
}

// loadPage replaces the values by those of a page, as a client does after its subscribe.
func (o *testWatcher) loadPage() {
	o.t.Helper()
	done := make(chan struct{})
	o.sub.loop.Post(func() {
		defer close(done)
		page, err := o.sub.Page("", 1000)
		if err != nil {
			o.t.Error(err)
		}
		o.loadValues(page.WireMembers())
	})
	<-done
}

// expectValues compares the values that the watcher knows with want, without its own.
func (o *testWatcher) expectValues(when string, want map[string]string) {
	o.t.Helper()
	want = maps.Clone(want)
	delete(want, o.name)
	if !maps.Equal(o.here, want) {
		o.t.Errorf("%s: %s knows the values %v, want %v", when, o.name, o.here, want)
	}
}

// pageValues returns the values in a page that a client without a watch receives.
func (n *node) pageValues() map[string]string {
	n.w.t.Helper()
	page, err := n.Page(n.w.t.Context(), testChannel, "", 1000, 0)
	n.w.check(err)
	o := &testWatcher{t: n.w.t, here: map[string]string{}}
	o.loadValues(page.WireMembers())
	return o.here
}

// hereCount returns how many values the server holds, ended ones included.
func (n *node) hereCount() int {
	h := n.lockHere(testChannel, false)
	if h == nil {
		return 0
	}
	defer h.mu.Unlock()
	return len(h.values)
}

// watchAsMember is watch for a watcher that is a member of the channel, as every session is.
func (n *node) watchAsMember(name string) *testWatcher {
	n.w.t.Helper()
	n.join(name, "", 1)
	n.w.settle()
	return n.watch(name)
}
