package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"switchboard/client"
	"switchboard/internal/await"
	"switchboard/internal/cond"
	"switchboard/internal/replay"
	"switchboard/internal/state"
	"switchboard/internal/testbed"
	"switchboard/internal/wire"
)

// readerTimeout is how long a reader waits for the messages that Redis holds.
const readerTimeout = 10 * time.Second

// checkErasures reads all messages of the channels in each way that there is, and counts the erased
// ones that are shown. Each broker is asked for some of the channels.
func (tb *bed) checkErasures(ctx context.Context, s scale) error {
	if _, err := tb.checkStored(ctx, "$all"); err != nil {
		return err
	}
	for i, b := range tb.brokers {
		r, err := startEraseReader(ctx, tb.journal, b, i)
		if err != nil {
			return err
		}
		for k := i; k < s.Rooms && err == nil; k += len(tb.brokers) {
			err = tb.checkErasuresOf(ctx, r, room(s, k))
		}
		_ = r.conn.Stop()
		if err != nil {
			return err
		}
	}
	return nil
}

// checkErasuresOf checks one channel at the broker of the reader.
func (tb *bed) checkErasuresOf(ctx context.Context, r *eraseReader, channel string) error {
	log, err := tb.checkStored(ctx, channel)
	if err != nil {
		return err
	}
	if err := r.checkHistory(channel, "the history over HTTP", func(after int64) (page client.Page, err error) {
		var answer struct {
			Messages []wire.Stored
			More     bool
			ID       int64
		}
		err = r.broker.Call(ctx, http.MethodGet, fmt.Sprintf("/v1/channels/%s/history?after=%d", channel, after), nil, &answer)
		return client.Page{Messages: answer.Messages, More: answer.More, Last: answer.ID}, err
	}); err != nil {
		return err
	}
	if err := r.checkHistory(channel, "the history over a socket", func(after int64) (page client.Page, err error) {
		err = await.Success(ctx, func() error { page, err = r.conn.History(ctx, channel, after, 0); return err })
		return page, err
	}); err != nil {
		return err
	}
	if err := r.readAll(ctx, channel, 0, log); err != nil || len(log) <= fromMemory {
		return err
	}
	log = log[len(log)-fromMemory:]
	return r.readAll(ctx, channel, log[0].ID, log[1:])
}

// fromMemory is how many entries a broker holds in its memory. A client that resumes after one of
// them does not receive the others from Redis.
const fromMemory = 40

// checkStored reads the log of a channel from Redis, and checks it.
func (tb *bed) checkStored(ctx context.Context, channel string) (log []replay.Entry, err error) {
	log, err = replay.Redis(ctx, tb.store.client, channel)
	for _, e := range log {
		if key := (messageKey{channel, e.ID}); tb.journal.isErased(key) && !state.IsErased(e.Data) {
			tb.journal.update(func() { tb.journal.revealLocked("Redis", key) })
		}
	}
	return log, err
}

// received returns what a client records of a stored message: its key, or that of the message that
// it reports as erased. ok is false if a client without the state receives nothing.
func received(key messageKey, e replay.Entry) (due messageKey, ok bool) {
	switch {
	case e.Changes == nil:
		return key, !bytes.HasPrefix(e.Data, []byte("!"))
	case e.Changes.Erase != 0:
		return messageKey{key.channel, -e.Changes.Erase}, true
	}
	return key, e.Changes.Data != nil
}

// eraseReader is a client that reads channels at one broker.
type eraseReader struct {
	journal *journal
	broker  *testbed.Broker
	conn    *testbed.Client

	cond cond.Cond           // guards the fields below
	got  map[messageKey]bool // messages, and with negative ids the messages reported as erased
}

// startEraseReader connects the reader of the broker with this index.
func startEraseReader(ctx context.Context, j *journal, b *testbed.Broker, i int) (*eraseReader, error) {
	r := &eraseReader{journal: j, broker: b, got: map[messageKey]bool{}}
	user := fmt.Sprintf("reader-%d", i)
	var err error
	r.conn, err = testbed.Connect(ctx, client.Options{
		URLs: []string{rawTCP.url(b.TCP)}, Client: user + "/tab", Token: tokenOf(user), BackoffMin: backoffMin, BackoffMax: backoffMax,
		OnMessage: func(m client.Message) {
			r.show("a new client of "+b.Name, messageKey{m.Channel, m.ID})
			r.cond.Change(func() { r.got[messageKey{m.Channel, m.ID}] = true })
		},
		OnErase: func(e client.Erased) { r.cond.Change(func() { r.got[messageKey{e.Channel, -e.ID}] = true }) },
	})
	return r, err
}

// show records data that is shown.
func (r *eraseReader) show(to string, key messageKey) {
	if r.journal.isErased(key) {
		r.journal.update(func() { r.journal.revealLocked(to, key) })
	}
}

// checkHistory checks all pages of a history.
func (r *eraseReader) checkHistory(channel, source string, read func(after int64) (client.Page, error)) error {
	for after, more := int64(0), true; more; {
		page, err := read(after)
		if err != nil {
			return err
		}
		for _, m := range page.Messages {
			if m.Erased == 0 {
				r.show(source+" at "+r.broker.Name, messageKey{channel, m.ID})
			}
		}
		after, more = page.Last, page.More
	}
	return nil
}

// readAll subscribes after a position, and waits for what the log has after it.
func (r *eraseReader) readAll(ctx context.Context, channel string, start int64, log []replay.Entry) error {
	var held []messageKey
	for _, m := range log {
		if key, ok := received(messageKey{channel, m.ID}, m); ok {
			held = append(held, key)
		}
	}
	r.cond.Change(func() { clear(r.got) })
	if err := await.Success(ctx, func() error {
		_, err := r.conn.Subscribe(ctx, channel, client.SubscribeOptions{After: &start})
		return err
	}); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, readerTimeout)
	defer cancel()
	_ = r.cond.Await(waiting, func() bool { return len(r.missing(held)) == 0 })
	r.cond.Lock()
	missing := r.missing(held)
	r.cond.Unlock()
	r.journal.update(func() {
		r.journal.erase.ReadInTheEnd += len(held) - len(missing)
		r.journal.erase.MissedByReader += len(missing)
		for _, key := range missing {
			r.journal.evidence.add("missed by a reader", "a new client of %s did not receive %d in %q", r.broker.Name, key.id, channel)
		}
	})
	return ctx.Err()
}

// missing returns the keys that the reader has not received. Call it with r.cond locked.
func (r *eraseReader) missing(held []messageKey) (keys []messageKey) {
	for _, key := range held {
		if !r.got[key] {
			keys = append(keys, key)
		}
	}
	return keys
}
