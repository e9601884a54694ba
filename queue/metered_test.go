package queue

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"switchboard/internal/meter"
	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// testMetered checks that what a call reads counts in its Meter.
func testMetered(t *testing.T, open opener) {
	f := open(t, Options{})
	text := `"` + strings.Repeat("x", 998) + `"`
	for range 5 {
		must(f.AppendChannel(t.Context(), ChannelPush{Channel: "c", Data: []byte(text)}))(t)
		must(f.AppendClient(t.Context(), ClientPush{Client: "p", Data: []byte(text)}))(t)
	}
	generation := must(f.BindClients(t.Context(), []Claim{{Client: "p", Server: "s"}})[0], error(nil))(t).Value.Generation
	u := &state.Update{}
	for i := range 5 {
		u.Ops = append(u.Ops, state.Op{Field: fmt.Sprint("f", i), Kind: state.Set, Value: []byte(text)})
	}
	must(f.AppendChannel(t.Context(), ChannelPush{Channel: "s", Update: u}))(t)
	for name, c := range map[string]struct {
		want int
		read func(ctx context.Context) error
	}{
		"channel": {5000, func(ctx context.Context) error {
			_, err := f.ReadChannel(ctx, "c", 0, 10)
			return err
		}},
		"channels": {3000, func(ctx context.Context) error {
			return f.ReadChannels(ctx, []ChannelRead{{Channel: "c", Limit: 2}, {Channel: "c", Limit: 1}})[0].Err
		}},
		"window": {4000, func(ctx context.Context) error {
			_, err := f.Window(ctx, "p", generation, 0, 4)
			return err
		}},
		"queue of a client": {5000, func(ctx context.Context) error {
			_, err := f.ReadClient(ctx, "p", 0, 10)
			return err
		}},
		"states": {6000, func(ctx context.Context) error {
			return f.ReadStates(ctx, []StateRead{{Channel: "s"}, {Channel: "s", Fields: []string{"f1"}}})[0].Err
		}},
	} {
		m := new(meter.Meter)
		ctx := meter.With(t.Context(), m)
		ok(t, c.read(ctx))
		if n := m.Bytes(); n < c.want || n > c.want*5/4 {
			t.Errorf("%s: %d bytes count, want about %d", name, n, c.want)
		}
	}
}

// testLargeRefusalMetered checks that a refusal for a full group reads little more than it shows.
func testLargeRefusalMetered(t *testing.T, open opener) {
	f := open(t, Options{})
	large := `"` + strings.Repeat("x", 15_000) + `"`
	for i := range 20 {
		must(f.update(t, set(fmt.Sprint("a/", i), large)))(t)
	}
	full := set("a/x", "1")
	full.GroupMax = 20
	m := new(meter.Meter)
	_, err := f.AppendChannel(meter.With(t.Context(), m), ChannelPush{Channel: room, Update: &state.Update{Ops: []state.Op{full}}})
	wantRefusal(t, "full", err, wire.Full)
	if n := m.Bytes(); n > 36<<10 {
		t.Errorf("%d bytes were read for a refusal", n)
	}
}
