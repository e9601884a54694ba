package queue

import (
	"context"
	"fmt"
	"iter"

	"switchboard/internal/state"
)

// appendUpdateLocked applies push.Update. An update that is refused may append an entry of expired
// fields; a then describes it.
func (m *Memory) appendUpdateLocked(c *memoryChannel, push ChannelPush, now int64) (a Appended, err error) {
	if c.state == nil {
		c.state = state.New()
	}
	u, reply, write := push.Update, "", func() {}
	apply := c.state.Apply
	if push.Script != nil {
		if u, reply, write = push.Script.extend(u, now); len(u.Ops) == 0 && u.Data == nil {
			apply = c.state.Check
		}
	}
	result, err := apply(u, now, nextIDs(now, c.last))
	a = m.appendEntriesLocked(c, push, result, now)
	a.Clock = now
	if err == nil {
		a.Reply = reply
		write()
	}
	c.dropEmptyState()
	return a, err
}

// dropEmptyState ends a state that has neither fields nor generations.
func (c *memoryChannel) dropEmptyState() {
	if c.state.IsEmpty() {
		c.state = nil
	}
}

// nextIDs returns a function that returns the ids after last, one after the other.
func nextIDs(now, last int64) func() int64 {
	return func() int64 {
		last = nextID(now, last)
		return last
	}
}

// appendEntriesLocked appends the entries of a change to the log.
func (m *Memory) appendEntriesLocked(c *memoryChannel, push ChannelPush, result state.Result, now int64) Appended {
	a := Appended{Numbers: result.Numbers}
	for _, logged := range result.Entries {
		a.ID, a.Prev, a.Data = logged.ID, c.last, logged.Entry.Encode()
		m.appendLocked(c, push, Message{ID: logged.ID, Data: a.Data}, now)
	}
	a.Due = c.state.NextDue()
	return a
}

// StepStates makes each change, in no particular order. The Appended of a change that appends
// nothing has the ID 0.
func (m *Memory) StepStates(ctx context.Context, steps []StateStep) []Outcome[Appended] {
	return forEach(ctx, steps, func(_ context.Context, step StateStep) (Appended, error) {
		a, err := m.stepState(step)
		if err != nil {
			return a, fmt.Errorf("state of channel %s: %w", step.Channel, err)
		}
		if m.servers != nil && a.ID != 0 {
			a.Servers = m.servers(step.Channel)
		}
		return a, nil
	})
}

func (m *Memory) stepState(step StateStep) (Appended, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.sweepLocked()
	c, found := m.channels.get(step.Channel, now)
	if !found || c.state == nil {
		if step.Kind != OwnerEnded {
			return Appended{}, nil
		}
		if !found {
			c = &memoryChannel{}
		}
		c.state = state.New() // for the generation: a late update must not make the client an owner
	}
	next := nextIDs(now, c.last)
	var result state.Result
	var err error
	switch s := c.state; step.Kind {
	case Sweep:
		result = s.Sweep(now, next)
	case OwnerEnded:
		result = s.End(now, next, step.Conn)
	case ServerEnded:
		result = s.EndServer(now, next, step.Conn.Server)
	case OwnerBack:
		current := false
		if result, current = s.Back(now, next, step.Conn); !current {
			err = ErrStale
		}
	case OwnerUnsubscribed:
		result = s.Disown(now, next, step.Conn)
	}
	a := m.appendEntriesLocked(c, ChannelPush{}, result, now)
	a.KeepUntil = c.state.KeepUntil()
	c.dropEmptyState()
	m.channels.put(step.Channel, c, now)
	return a, err
}

// ReadStates is like [Redis.ReadStates].
func (m *Memory) ReadStates(ctx context.Context, reads []StateRead) []Outcome[StatePage] {
	return forEach(ctx, reads, func(ctx context.Context, r StateRead) (StatePage, error) {
		page := m.readState(r)
		page.count(ctx)
		return page, nil
	})
}

func (m *Memory) readState(r StateRead) StatePage {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.sweepLocked()
	page := StatePage{Clock: now}
	if r.Count != nil {
		page.Counts = make([]int, len(r.Count))
	}
	c, found := m.channels.get(r.Channel, now)
	if !found {
		return page
	}
	page.ID = c.last
	if c.state == nil {
		return page
	}
	page.Due, page.KeepUntil = c.state.NextDue(), c.state.KeepUntil()
	if r.Count != nil {
		page.Counts, page.Ends, page.Expired = c.state.Count(now, r.Count)
	}
	add := func(name string, f *state.Field) {
		if r.Brief && r.Count == nil {
			f = &state.Field{Lease: f.Lease, Away: f.Away, Value: f.Value}
		}
		page.Fields = append(page.Fields, NamedField{name, f})
	}
	if len(r.Fields) > 0 || r.Count != nil {
		for _, name := range r.Fields {
			if f := c.state.Get(now, name); f != nil {
				add(name, f)
			}
		}
		return page
	}
	names, fields, next := c.state.Read(now, r.Prefix, r.Cursor, r.Limit, r.Bytes)
	for i, name := range names {
		add(name, fields[i])
	}
	page.Next = next
	return page
}

// StateChannels is like [Redis.StateChannels].
func (m *Memory) StateChannels(context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, name := range m.stateChannels() {
			if !yield(name, nil) {
				return
			}
		}
	}
}

func (m *Memory) stateChannels() (names []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, n := range m.channels.nodes {
		if n.value.state != nil {
			names = append(names, name)
		}
	}
	return names
}

// StateServers is like [Redis.StateServers].
func (m *Memory) StateServers(_ context.Context, channel string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, found := m.channels.get(channel, m.sweepLocked())
	if !found || c.state == nil {
		return nil, nil
	}
	return c.state.Servers(), nil
}
