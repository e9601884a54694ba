package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"switchboard/client"
	"switchboard/internal/await"
	"switchboard/internal/wire"
)

const (
	writerRate    = 1.5 // updates a second of each client that writes
	backendRate   = 6.0 // updates a second of the backend in each channel
	updateTimeout = 15 * time.Second
)

// stateWriter makes random updates of one channel: claims of seats, counters, compare-and-set, and
// leases.
type stateWriter struct {
	name    string // in values and keys
	channel string
	beat    time.Duration
	random  *rand.Rand
	n       int

	// idOf returns the id of a field as far as the writer knows, 0 if it is absent.
	idOf func(field string) int64
	// do makes the update under the key.
	do func(ctx context.Context, u update, key string)
}

// run makes updates, rate times a second, until stop is done. Calls end with ctx.
func (w *stateWriter) run(ctx, stop context.Context, rate float64) {
	every := float64(time.Second) / rate
	for await.Pause(stop, time.Duration(every*(0.5+w.random.Float64()))) == nil {
		w.update(ctx, w.next())
	}
}

func (w *stateWriter) update(ctx context.Context, u update) {
	w.n++
	w.do(ctx, u, fmt.Sprintf("%s.%d", w.name, w.n))
}

// next returns a random update. Each value is unique.
func (w *stateWriter) next() update {
	u := update{channel: w.channel}
	value := fmt.Sprintf(`{"by":%q,"n":%d}`, w.name, w.n+1)
	field := func(group string, n int) string { return fmt.Sprint(group, w.random.IntN(n)) }
	switch w.random.IntN(7) {
	case 0, 1:
		seat := field(seatGroup, 2*seatLimit)
		u.set = map[string]string{seat: value}
		if w.name == backendName || w.random.IntN(2) == 0 { // without a condition, only the claim protects a seat
			u.ifID = map[string]int64{seat: 0}
		}
		if w.random.IntN(2) == 0 {
			u.ttl = 2 * w.beat
		}
	case 2:
		seat := field(seatGroup, 2*seatLimit)
		if id := w.idOf(seat); id != 0 {
			u.del, u.ifID = []string{seat}, map[string]int64{seat: id}
			break
		}
		fallthrough
	case 3:
		doc := field(docGroup, 3)
		u.set, u.ifID = map[string]string{doc: value}, map[string]int64{doc: w.idOf(doc)}
	case 4:
		u.add = map[string]addition{field(countGroup, 2): {By: int64(1 - 2*w.random.IntN(2)), Max: countLimit}}
	case 5:
		u.touch, u.ttl = []string{field(leaseGroup, 6)}, 2*w.beat
	default:
		u.set, u.ttl = map[string]string{field(leaseGroup, 6): value}, w.beat+time.Duration(w.random.Int64N(int64(w.beat)))
	}
	return u
}

// runState changes the states until stop is done, and returns when all calls have ended.
func (tb *bed) runState(ctx, stop context.Context, p *publisher, s scale) {
	var all sync.WaitGroup
	writers := map[string]int{} // by channel
	for i, c := range tb.clients {
		if c.state == "" || c.listener == javaScript { // client/js follows only
			continue
		}
		all.Go(func() { c.keepOwnField(ctx, stop, tb.times.Beat, !isQuiet(s, c.state)) })
		if isQuiet(s, c.state) || writers[c.state] == s.StateWriters {
			continue
		}
		writers[c.state]++
		w := tb.newWriter(c.clientSpec.client, c.state, uint64(i))
		w.idOf = func(field string) int64 {
			f, _ := c.conn.Field(c.state, field)
			return f.ID
		}
		w.do = c.update
		all.Go(func() { w.run(ctx, stop, writerRate) })
	}
	for i := range s.StateRooms {
		b := &stateBackend{publisher: p, journal: tb.state, known: map[string]int64{}}
		w := tb.newWriter(backendName, room(s, i), uint64(1000+i))
		w.idOf, w.do = func(field string) int64 { return b.known[field] }, b.update
		if isQuiet(s, w.channel) {
			all.Go(func() { w.runLeases(ctx, stop) })
			continue
		}
		all.Go(func() { w.run(ctx, stop, backendRate) })
		all.Go(func() { tb.keepSeatLimit(ctx, stop, p, w.channel) })
	}
	all.Wait()
}

func (tb *bed) newWriter(name, channel string, n uint64) *stateWriter {
	return &stateWriter{name: name, channel: channel, beat: tb.times.Beat, random: rand.New(rand.NewPCG(tb.seed, 1<<32+n))}
}

// runLeases sets a lease from time to time. Nothing else changes the channel when it ends, so that
// only a server that sweeps the state can publish the end.
func (w *stateWriter) runLeases(ctx, stop context.Context) {
	for await.Pause(stop, w.beat*3/2) == nil {
		field := fmt.Sprint(leaseGroup, w.n)
		w.update(ctx, update{channel: w.channel, set: map[string]string{field: "1"}, ttl: w.beat})
	}
}

// update makes an update over the client's connection and records it.
func (c *testClient) update(ctx context.Context, u update, key string) {
	ctx, cancel := context.WithTimeout(ctx, updateTimeout)
	defer cancel()
	call := updateCall{update: u, by: c.clientSpec.client, durable: c.durable, firstTry: time.Now()}
	call.began = call.firstTry
	done, err := c.conn.Update(ctx, u.channel, u.clauses(key, c.durable)...)
	for errors.Is(err, client.ErrNotReplicated) && await.Pause(ctx, pushRetryDelay) == nil { // it is accepted when a replica has it
		call.began = time.Now()
		done, err = c.conn.Update(ctx, u.channel, u.clauses(key, c.durable)...)
	}
	call.ended = time.Now()
	if err == nil {
		call.id, call.numbers = done.ID, done.Numbers
		c.states.updated(call)
		return
	}
	if r, ok := errors.AsType[*client.Refusal](err); ok {
		call.refusal = newRefusal(r)
	} else if e, ok := errors.AsType[*client.Error](err); ok {
		call.refusal = &stateRefusal{code: e.Code}
	} else {
		return // an unknown outcome
	}
	c.states.refused(call)
}

// keepOwnField makes the client own a field until stop is done. After the field has ended, because
// the client was away for too long, it sets it again. With rewrite, it also changes the value.
func (c *testClient) keepOwnField(ctx, stop context.Context, beat time.Duration, rewrite bool) {
	field := memberField(c.clientSpec.client)
	for n := 0; ; n++ {
		if _, found := c.conn.Field(c.state, field); !found || rewrite && n%8 == 7 {
			u := update{channel: c.state, set: map[string]string{field: fmt.Sprint(n)}, own: !found}
			c.update(ctx, u, fmt.Sprintf("%s.own.%d", c.clientSpec.client, n))
		}
		if await.Pause(stop, beat) != nil {
			return
		}
	}
}

// keepSeatLimit limits the group of seats, and limits it again after Redis has lost the limit.
func (tb *bed) keepSeatLimit(ctx, stop context.Context, p *publisher, channel string) {
	b := &stateBackend{publisher: p, journal: tb.state, known: map[string]int64{}}
	limit := update{channel: channel, set: map[string]string{seatLimitField: fmt.Sprint(seatLimit)}, ifID: map[string]int64{seatLimitField: 0}}
	for n := 0; ; n++ {
		b.update(ctx, limit, fmt.Sprintf("limit.%d", n))
		if await.Pause(stop, tb.times.Beat) != nil {
			return
		}
	}
}

// isQuiet reports whether the channel is the one with few changes: the last one with a state.
func isQuiet(s scale, channel string) bool { return channel == room(s, s.StateRooms-1) }

// passingCodes are the codes of refusals that do not depend on the state.
var passingCodes = map[wire.ErrorCode]bool{wire.Unavailable: true, wire.Timeout: true, wire.RateLimited: true}
