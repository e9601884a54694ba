package main

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"time"

	"switchboard/client/backend"
	"switchboard/cmd/internal/screen"
)

const (
	// firstPause is the first pause after a failed call. It doubles up to lastPause.
	firstPause = 200 * time.Millisecond
	lastPause  = 3 * time.Second
	// pollEvery is the interval of calls to a broker that does not wait with its answer.
	pollEvery = 500 * time.Millisecond
)

// reader reads a page of the messages of a channel or of a queue.
type reader func(context.Context, backend.HistoryQuery) (page, error)

// page is a page of messages, oldest first.
type page struct {
	messages  []backend.Message
	id        int64 // the position after the page
	recovered bool  // no message is missing before the first one
	more      bool
}

func channelReader(sb *backend.Client, name string) reader {
	return func(ctx context.Context, q backend.HistoryQuery) (page, error) {
		p, err := sb.History(ctx, name, q)
		return page{p.Messages, p.ID, p.Recovered, p.More}, err
	}
}

func queueReader(sb *backend.Client, id string) reader {
	return func(ctx context.Context, q backend.HistoryQuery) (page, error) {
		p, err := sb.Queue(ctx, id, q)
		return page{p.Messages, p.ID, p.Recovered, p.More}, err
	}
}

// last reads the messages above an id up to now, and returns the last n of them, 0 for all, and the
// number of all. The page is recovered if none is missing above the id.
func (read reader) last(ctx context.Context, after int64, n int) (last page, total int, err error) {
	last = page{id: after, recovered: true}
	for {
		p, err := read(ctx, backend.HistoryQuery{After: last.id, Limit: tailPage})
		if err != nil {
			return page{}, 0, err
		}
		total += len(p.messages)
		last.recovered = last.recovered && p.recovered
		last.messages = append(last.messages, p.messages...)
		if n > 0 {
			last.messages = last.messages[max(0, len(last.messages)-n):]
		}
		last.id = p.next(last.id)
		if !p.more || len(p.messages) == 0 {
			return last, total, nil
		}
	}
}

// stream is what tail follows: a channel or the queue of a client.
type stream struct {
	kind, name string // "channel" or "client"
	read       reader
	begin      func(context.Context) (page, error) // what to print first
}

func (t *tail) channel(name string) stream {
	read := channelReader(t.sb, name)
	return stream{"channel", name, read, func(ctx context.Context) (page, error) {
		if t.flags.last > 0 {
			last, _, err := read.last(ctx, 0, t.flags.last)
			return last, err
		}
		c, err := t.sb.Channel(ctx, name)
		return page{id: c.ID}, err
	}}
}

func (t *tail) queue(id string) stream {
	return stream{"client", id, queueReader(t.sb, id), func(context.Context) (page, error) { return page{}, nil }}
}

// follow prints the messages of a stream until ctx ends, or the broker refuses to show them.
func (t *tail) follow(ctx context.Context, s stream) error {
	after, known := t.position(s), true
	if after < 0 {
		known = false
	}
	first := after >= 0 && t.flags.after == after // the user may ask for more than is kept
	pause := firstPause
	for ctx.Err() == nil {
		if !known {
			first, err := s.begin(ctx)
			if err != nil {
				if err := t.pause(ctx, err, &pause); err != nil {
					return err
				}
				continue
			}
			if err := t.print(s, first.messages, first.id); err != nil { // a restart continues here
				return err
			}
			after, known = first.id, true
		}
		asked := time.Now()
		p, err := s.read(ctx, backend.HistoryQuery{After: after, Limit: tailPage, Wait: tailWait})
		if err != nil {
			if err := t.pause(ctx, err, &pause); err != nil {
				return err
			}
			continue
		}
		pause = firstPause
		next := p.next(after)
		if !p.recovered && !(first && after == 0) {
			t.printGap(s, after, next)
		}
		first = false
		if err := t.print(s, p.messages, next); err != nil {
			return err
		}
		if after = next; len(p.messages) == 0 && time.Since(asked) < pollEvery {
			wait(ctx, pollEvery)
		}
	}
	return ctx.Err()
}

// next returns the position after the page. Brokers before the parameter wait do not say it.
func (p page) next(after int64) int64 {
	switch n := len(p.messages); {
	case p.id > 0:
		return p.id
	case n > 0:
		return p.messages[n-1].ID
	case p.recovered:
		return after
	}
	return 0 // the store has forgotten the channel
}

// pause waits after a failed call, and reports once that an instance does not answer. It returns
// err if waiting does not help.
func (t *tail) pause(ctx context.Context, err error, pause *time.Duration) error {
	if ctx.Err() != nil || exitCode(err) != exitUnavailable {
		return err
	}
	t.mu.Lock()
	if !t.warned {
		t.note("%v; trying again", err)
	}
	t.warned = true
	t.mu.Unlock()
	wait(ctx, *pause/2+rand.N(*pause/2))
	*pause = min(2**pause, lastPause)
	return nil
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// print prints messages of a stream, and then stores the position.
func (t *tail) print(s stream, messages []backend.Message, position int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.warned = false
	for _, m := range messages {
		if t.flags.count > 0 && t.printed >= t.flags.count {
			return nil // another stream has printed the last message
		}
		t.printMessage(s.kind, s.name, m)
		if err := t.screen.Err(); err != nil {
			return err
		}
		if t.printed++; t.flags.count > 0 && t.printed >= t.flags.count {
			t.stop()
			return t.positions.save(s, m.ID)
		}
	}
	return t.positions.save(s, position)
}

// tailMessage is a line of tail with --json.
type tailMessage struct {
	Type    string `json:"type"`
	Channel string `json:"channel,omitempty"`
	Client  string `json:"client,omitempty"`
	backend.Message
}

// printMessage prints a message of a channel or of the queue of a client, as kind says.
func (a *app) printMessage(kind, name string, m backend.Message) {
	line := tailMessage{Type: "message", Message: m}
	if kind == "channel" {
		line.Channel = name
	} else {
		line.Client = name
	}
	a.screen.Value(line, func() {
		cells := []screen.Cell{{Text: name, Color: screen.Cyan}, {Text: number(m.ID), Color: screen.Dim}, {Text: string(m.Data)}}
		if a.screen.Terminal {
			cells = append([]screen.Cell{{Text: clock(m.ID), Color: screen.Dim}}, cells...)
		}
		if m.Erased != 0 {
			cells = append(cells, screen.Cell{Text: "erased", Color: screen.Red})
		}
		for _, note := range []struct{ what, client string }{{"by", m.By}, {"from", m.From}, {"not to", m.Exclude}} {
			if note.client != "" {
				cells = append(cells, screen.Cell{Text: note.what + " " + note.client, Color: screen.Dim})
			}
		}
		if m.StateEvent != nil {
			text, _ := json.Marshal(m.StateEvent) // it was decoded from JSON
			cells = append(cells, screen.Cell{Text: string(text), Color: screen.Yellow})
		}
		a.screen.Line(cells...)
	})
}

func (t *tail) printGap(s stream, after, id int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.app.printGap(s.kind, s.name, after, id)
}

// printGap prints that messages of a channel or of the queue of a client are missing.
func (a *app) printGap(kind, name string, after, id int64) {
	a.screen.Value(map[string]any{"type": "gap", kind: name, "after": after, "id": id}, func() {
		a.screen.Line(screen.Cell{Text: name, Color: screen.Cyan}, screen.Cell{Text: number(id), Color: screen.Dim},
			screen.Cell{Text: "gap: some messages above " + number(after) + " are gone", Color: screen.Red})
	})
}

// clock returns the time of a message, for people.
func clock(id int64) string { return timeOf(id).Local().Format("15:04:05.000") }

// timeOf returns the time at which a message was stored, which its id contains.
func timeOf(id int64) time.Time {
	return time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(id/4096) * time.Millisecond)
}
