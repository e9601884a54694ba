package delivery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"switchboard/internal/state"
	"switchboard/queue"
)

// fakeFieldEnds stores the calls. Track fails for channel bad.
type fakeFieldEnds struct{ calls []string }

func (f *fakeFieldEnds) Track(_ context.Context, channels []string) []error {
	f.calls = append(f.calls, fmt.Sprint("track ", channels))
	errs := make([]error, len(channels))
	for i, channel := range channels {
		if channel == "bad" {
			errs[i] = errors.New("no answer")
		}
	}
	return errs
}

func (f *fakeFieldEnds) Changed(_ context.Context, channels []string, changes []queue.Appended) {
	for i, channel := range channels {
		f.calls = append(f.calls, fmt.Sprintf("changed %s %s %v", channel, changes[i].Data, changes[i].Due > 0))
	}
}

// TestFieldEnds checks which pushes and steps are reported: only changes of states, in the channels
// that ask for it.
func TestFieldEnds(t *testing.T) {
	p := newMemoryPusher()
	var ends fakeFieldEnds
	p.opts.FieldEnds, p.opts.TracksFields = &ends, func(channel string) bool { return channel != "quiet" }
	want := func(what string, calls ...string) {
		t.Helper()
		if !slices.Equal(ends.calls, calls) {
			t.Errorf("%s: calls %q, want %q", what, ends.calls, calls)
		}
		ends.calls = nil
	}
	to := func(channel string, payload Payload) Push {
		return Push{Kind: Channel, Name: channel, Payload: payload}
	}
	update := setField(state.Op{Field: "x", Value: []byte("1"), Own: state.Own, TTL: 1e9}).Payload
	update.Update.Client, update.Update.Server = "tab", "me"
	own := `~{"set":{"x":1},"until":{"x":1800000001000},"own":{"x":["tab"]},"by":"tab"}`

	for _, push := range []Push{to("a", update), to("quiet", update), to("a", Payload{Data: []byte("1")})} {
		if p.PushBatch(t.Context(), []Push{push}); push.Err != nil {
			t.Error(push.Err)
		}
	}
	want("single pushes", "track [a]", "changed a "+own+" true")

	if _, err := p.ToChannel(t.Context(), "bad", update); err == nil {
		t.Error("an update of a channel that is not tracked is stored")
	}
	want("a single push that fails", "track [bad]")

	batch := []Push{to("b", update), to("bad", update), to("quiet", update), to("c", Payload{Data: []byte("1")}), to("d", update)}
	p.PushBatch(t.Context(), batch)
	for _, push := range batch {
		if failed := push.Name == "bad"; (push.Err != nil) != failed || (push.Channel.ID == 0) != failed {
			t.Errorf("push to %s: %+v, %v", push.Name, push.Channel, push.Err)
		}
	}
	want("a batch", "track [b bad d]", "changed b "+own+" true", "changed d "+own+" true")

	conn := state.Connection{Client: "tab", Server: "me"}
	p.StepStates(t.Context(), []queue.StateStep{
		{Channel: "a", Kind: queue.OwnerUnsubscribed, Conn: conn}, {Channel: "quiet", Kind: queue.OwnerUnsubscribed, Conn: conn},
	})
	want("steps", `changed a ~{"gone":{"x":"left"}} false`)

	update.Update.If = []state.Condition{{Field: "y", Kind: state.Exists}}
	p.now = p.now.Add(2e9)
	if _, err := p.ToChannel(t.Context(), "b", update); err == nil {
		t.Error("the update is not refused")
	}
	want("a refused update", "track [b]", `changed b ~{"gone":{"x":"expired"}} false`)
}
