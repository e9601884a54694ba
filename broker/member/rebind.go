package member

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"switchboard/broker/binding"
	"switchboard/internal/slots"
	"switchboard/internal/wire"
)

const (
	// rebindTimeout bounds the store calls of one batch.
	rebindTimeout = 10 * time.Second
	// rebindBatches is how many batches are bound at the same time.
	rebindBatches = 4
)

// Rebind has the next beat compare all bindings with the store: it may have lost any of them.
func (m *Member) Rebind() {
	all := slots.All()
	m.work.change(&all)
}

// Changed has the next beat compare the bindings in the slots: their master restarted or failed
// over.
func (m *Member) Changed(of *slots.Set) { m.work.change(of) }

// UncertainChannel notes that a call that binds or unbinds a channel, or that changes its roster or
// its watchers, has an unknown outcome. The store may execute it after a later call. So the next
// beat compares the channel.
func (m *Member) UncertainChannel(channel string) { m.work.noAnswer(item{ofChannel, channel}) }

// UncertainClient is UncertainChannel for a call about the binding of a client.
func (m *Member) UncertainClient(client string) {
	m.work.noAnswer(item{ofClient, client})
}

// Bound reports whether everything is bound, as far as this server knows.
func (m *Member) Bound() bool { return !m.failing.Load() && !m.work.pending() }

// Wait waits for a rebind that runs.
func (m *Member) Wait() { m.background.Wait() }

// rebind works on the list in the background: with many clients it takes seconds, and the beats
// must not wait. What fails stays in the list until the next beat.
func (m *Member) rebind(ctx context.Context) {
	if !m.work.begin() {
		return // a beat after the end finds what was added meanwhile
	}
	m.background.Go(func() {
		defer m.work.end()
		m.rebindItems(ctx)
		if ctx.Err() == nil {
			m.checkRest(ctx)
		}
	})
}

// rebindItems works on the list until it has no items that have not failed. A failure of the store
// meanwhile adds items.
func (m *Member) rebindItems(ctx context.Context) {
	var batches errgroup.Group
	batches.SetLimit(rebindBatches)
	for ctx.Err() == nil {
		if of := m.work.takeChanged(); !of.Empty() {
			if m.opts.Rebinding != nil {
				m.opts.Rebinding()
			}
			m.list(&of)
		}
		batch, formerID := m.work.take()
		if len(batch) > 0 {
			batches.Go(func() error {
				m.rebindBatch(ctx, batch, formerID)
				return nil
			})
			continue
		}
		_ = batches.Wait()
		if !m.work.hasChanged() {
			return
		}
	}
	_ = batches.Wait()
}

// list adds the items that a failure of the slots concerns. The store most likely lost the last
// writes: so what was bound lately comes first.
func (m *Member) list(of *slots.Set) {
	held := need(0)
	if of.HasName(m.ID()) {
		held = needHeld
	}
	channels := m.parts.Hub.Held()
	clients := m.parts.Sessions.Held()
	for _, recent := range []bool{true, false} {
		for _, c := range channels {
			if c.Recent != recent {
				continue
			}
			needs := held
			if m.opts.Registry.ListedIn(c.Name, of) {
				needs |= needList
			}
			if of.HasName(c.Name) {
				needs |= needOwn
			}
			m.work.add(item{ofChannel, c.Name}, needs)
		}
		for _, c := range clients {
			if c.Recent != recent {
				continue
			}
			needs := held
			if of.HasName(c.Client) {
				needs |= needOwn
			}
			if user := wire.UserOf(c.Client); user != "" && of.HasName(user) {
				needs |= needUser
			}
			m.work.add(item{ofClient, c.Client}, needs)
		}
	}
	m.parts.Presence.ResyncUsers(of)
}

// rebindBatch compares a batch of items with the store, and writes and reads what differs.
func (m *Member) rebindBatch(ctx context.Context, batch map[item]need, formerID string) {
	ctx, cancel := context.WithTimeout(ctx, rebindTimeout)
	defer cancel()
	var held, listed, own []string
	var clients []binding.Lost
	for _, i := range sorted(batch) {
		needs := batch[i]
		if i.kind == ofClient {
			clients = append(clients, binding.Lost{
				Client: i.name, Record: needs&needOwn != 0, User: needs&needUser != 0, Renamed: formerID != "",
			})
			continue
		}
		if needs&needOwn != 0 {
			own = append(own, i.name)
		}
		switch { // binding and listing a channel includes holding it
		case needs&needList != 0:
			listed = append(listed, i.name)
		case needs&(needHeld|needOwn) == needHeld:
			held = append(held, i.name)
		}
	}
	var failed []item
	failure := func(kind itemKind, names []string, err error) {
		if err == nil {
			return
		}
		m.opts.Log.Warn().Err(err).Int("names", len(names)).Msg("could not bind again; a later beat tries again")
		for _, name := range names {
			failed = append(failed, item{kind, name})
		}
	}
	p := m.parts
	if len(held) > 0 {
		failure(ofChannel, held, p.Hub.HoldAgain(ctx, held))
	}
	if len(listed) > 0 {
		failure(ofChannel, listed, p.Hub.ListAgain(ctx, listed))
	}
	if len(own) > 0 {
		restored, names, err := p.Hub.Rebind(ctx, own, formerID)
		failure(ofChannel, names, err)
		p.Presence.Resync(slices.DeleteFunc(own, wire.IsSystem), slices.DeleteFunc(restored, wire.IsSystem))
	}
	if len(clients) > 0 {
		names, err := p.Sessions.Rebind(ctx, clients)
		failure(ofClient, names, err)
	}
	m.work.finish(batch, failed)
}

// checkRest checks, after all is bound again, that the store knows which owners of fields are
// connected, and that it still has the messages that it acknowledged.
func (m *Member) checkRest(ctx context.Context) {
	of, ok := m.work.takeRest()
	if !ok {
		return
	}
	err := m.parts.Sessions.RestoreOwners(ctx, &of)
	if err != nil {
		m.opts.Log.Warn().Err(err).Msg("could not store which owners of fields are connected; a later beat tries again")
	} else {
		var losses int
		if losses, err = m.parts.Pusher.Confirm(ctx, &of); err != nil {
			m.opts.Log.Warn().Err(err).Msg("could not check for lost messages; a later beat tries again")
		} else if losses > 0 {
			m.opts.Logger.Error().Int("queues", losses).Msg("the store has lost messages that it had acknowledged; their receivers are notified of the gap")
			m.opts.Lost(losses)
		}
		if err == nil && !m.parts.Pusher.ConfirmsAll() {
			m.opts.Logger.Warn().Msg("messages of too many queues were stored in the last minutes; the store was not asked for all of them")
		}
	}
	m.work.restChecked(&of, err == nil)
}

// sorted returns items in an order that does not depend on the map, so that a simulation can repeat
// a run.
func sorted[V any](items map[item]V) []item {
	return slices.SortedFunc(maps.Keys(items), func(a, b item) int {
		return cmp.Or(strings.Compare(a.name, b.name), cmp.Compare(a.kind, b.kind))
	})
}
