package janitor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"switchboard/events/recording"
	"switchboard/internal/state"
	"switchboard/queue"
	"switchboard/registry"
)

// own sets a field that a client owns, with a grace period that does not end.
func (e *env) own(channel, field, client, server string) {
	e.Helper()
	e.ownFor(channel, field, client, server, state.GraceNever)
}

// ownFor sets a field that a client owns, with a grace period.
func (e *env) ownFor(channel, field, client, server string, grace time.Duration) {
	e.Helper()
	_, err := e.queue.AppendChannel(e.Context(), queue.ChannelPush{Channel: channel, Update: &state.Update{
		Ops:    []state.Op{{Field: field, Kind: state.Set, Value: []byte("1"), Own: state.Own, Grace: grace}},
		Writer: state.ClientHolder(client), Client: client, Generation: 1, Server: server,
	}})
	e.ok(err)
}

// fields returns the names of a channel's fields, each with "away" if its owners have left.
func (e *env) fields(channel string) (names []string) {
	e.Helper()
	o := e.queue.ReadStates(e.Context(), []queue.StateRead{{Channel: channel}})[0]
	e.ok(o.Err)
	for _, f := range o.Value.Fields {
		name := f.Name
		if f.Away != 0 {
			name += " away"
		}
		names = append(names, name)
	}
	return names
}

// TestOwnersOfDeadServer checks that the fields of a dead server's clients become away, before the
// server is forgotten, and that other fields stay as they are.
func TestOwnersOfDeadServer(t *testing.T) {
	eachStore(t, func(e *env) {
		e.addServer("dead", 3, 0)
		e.addServer("live", 2, 0)
		e.own("c0", "a", "phone", "dead")
		e.own("c0", "b", "tablet", "live")
		e.own("c2", "c", "phone", "dead")
		j := e.janitor(nil)
		e.expireLease("dead")
		e.round(j.ServersRound)
		equal(e, "a suspected server", e.fields("c0"), []string{"a", "b"})
		equal(e, "report", e.round(j.ServersRound), Report{DeclaredDead: 1, Forgotten: 1, Channels: 3, States: 2})
		equal(e, "c0", e.fields("c0"), []string{"a away", "b"})
		equal(e, "c2", e.fields("c2"), []string{"c away"})
	})
}

// TestStatesRound checks that the round ends what is due: fields, states that are not kept any
// longer, and the connections of servers that no longer exist. A dry run changes nothing.
func TestStatesRound(t *testing.T) {
	eachStore(t, func(e *env) {
		e.addServer("live", 1, 0)
		e.own("c0", "a", "phone", "live")
		e.own("c1", "b", "phone", "unknown")
		for _, channel := range []string{"lease", "keep"} {
			u := &state.Update{Ops: []state.Op{{Field: "x", Kind: state.Set, Value: []byte("1")}}, Writer: state.BackendHolder}
			if channel == "lease" {
				u.Ops[0].TTL = time.Millisecond
			} else {
				u.Keep = time.Millisecond
			}
			_, err := e.queue.AppendChannel(e.Context(), queue.ChannelPush{Channel: channel, Update: u})
			e.ok(err)
		}
		for ctx := e.Context(); len(e.fields("lease"))+len(e.fields("keep")) > 0; e.ok(ctx.Err()) {
		}
		equal(e, "dry run", e.round(e.janitor(func(o *Options) { o.DryRun = true }).StatesRound), Report{DryRun: true})
		j := e.janitor(nil)
		equal(e, "report", e.round(j.StatesRound), Report{States: 3})
		equal(e, "c0", e.fields("c0"), []string{"a"})
		equal(e, "c1", e.fields("c1"), []string{"b away"})
		for _, channel := range []string{"lease", "keep"} {
			page, err := e.queue.ReadChannel(e.Context(), channel, 0, 10)
			e.ok(err)
			equal(e, channel+": entries", len(page.Messages), 2)
		}
		equal(e, "second round", e.round(j.StatesRound), Report{})
	})
}

// notifications returns the number by which a server notices that states have changed.
func (e *env) notifications(server string) int64 {
	e.Helper()
	s, _, err := e.registry.Lease(e.Context(), server)
	e.ok(err)
	return s.StatesChanged
}

// TestNotifiedServers checks that both rounds notify the live servers of the channels whose fields
// they have ended, and no others.
func TestNotifiedServers(t *testing.T) {
	eachStore(t, func(e *env) {
		e.addServer("dead", 2, 0)
		e.addServer("bound", 1, 0)
		e.addServer("other", 0, 0)
		e.ok(e.registry.BindChannel(e.Context(), "other", "c1"))
		e.own("c0", "a", "phone", "dead")
		e.expireLease("dead")
		j := e.janitor(nil)
		e.round(j.ServersRound)
		equal(e, "before", []int64{e.notifications("bound"), e.notifications("other")}, []int64{0, 0})
		e.round(j.ServersRound)
		first := e.notifications("bound")
		if first == 0 || e.notifications("other") != 0 {
			e.Errorf("numbers %d and %d; want a notification of the server of c0 alone", first, e.notifications("other"))
		}
		equal(e, "the dead server", e.listed(), []string{"bound", "other"})

		e.round(j.StatesRound)
		equal(e, "a round without changes", e.notifications("bound"), first)
		e.own("c0", "b", "tablet", "unknown")
		e.round(j.StatesRound)
		if e.notifications("bound") == first || e.notifications("other") != 0 {
			e.Errorf("numbers %d and %d after the StatesRound; before %d", e.notifications("bound"), e.notifications("other"), first)
		}
	})
}

// TestNotifiedAtTheEnd checks that servers are notified although the janitor has been stopped.
func TestNotifiedAtTheEnd(t *testing.T) {
	eachStore(t, func(e *env) {
		e.addServer("live", 1, 0)
		var counts counters
		counts.stale.add([]string{"live", "gone"})
		ctx, cancel := context.WithCancel(e.Context())
		cancel()
		e.ok(e.janitor(nil).notifyStates(ctx, &counts))
		if e.notifications("live") == 0 {
			e.Error("no notification")
		}
	})
}

// TestEventsOfOwners checks that the fields that the janitor ends make events without a SweepRound:
// a field without a grace period at once, a field with one at its end.
func TestEventsOfOwners(t *testing.T) {
	eachStore(t, func(e *env) {
		d, sender := e.dispatcher()
		e.addServer("live", 1, 0)
		e.ok(errors.Join(d.TrackFields(e.Context(), "now", "later")...))
		e.ownFor("now", "a", "phone", "unknown", 0)
		e.ownFor("later", "b", "phone", "unknown", time.Millisecond)
		j := e.janitor(func(o *Options) {
			withEvents(e, d)(o)
			o.FieldEnds = recording.NewFields(d.Recorder, nil, zerolog.Nop())
		})
		e.round(j.StatesRound)
		for ctx := e.Context(); len(e.fields("later")) > 0; e.ok(ctx.Err()) {
		}
		sender.advance(time.Second)
		e.eventRound(j, due)
		e.eventRound(j, send)
		equal(e, "events", sender.take(), []string{"fields_gone later", "fields_gone now"})
	})
}

// TestStatesRoundOverManyChannels checks that a round sweeps each state, also beyond one page.
func TestStatesRoundOverManyChannels(t *testing.T) {
	e := memoryEnv(t)
	e.ok(e.registry.Join(e.Context(), registry.Server{ID: "live"}))
	for i := range pageSize + 1 {
		e.own(fmt.Sprint("channel", i), "a", "phone", "unknown")
	}
	equal(e, "report", e.round(e.janitor(nil).StatesRound), Report{States: pageSize + 1})
	equal(e, "the last channel", slices.Concat(e.fields(fmt.Sprint("channel", pageSize))), []string{"a away"})
}
