package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"switchboard/internal/wire"
)

const (
	watcherAgain = 100 * time.Millisecond // between two connections
	watcherCall  = 5 * time.Second        // for one answer
	mostMembers  = 256                    // of one page
)

var errAway = errors.New("the watcher is not connected")

// watcher is a connection to one broker that follows who comes and goes, over raw TCP and without a library, so that nothing
// hides what is told. When the broker dies it comes back to the same one.
type watcher struct {
	name     string // client and user
	at       *instance
	channels []string // that it follows, also `$user:` ones
	book     *attendance

	leave context.CancelFunc
	ended chan struct{}

	mu      sync.Mutex // guards the fields below, and writing to conn
	conn    net.Conn   // nil while away
	ref     int64
	waiting map[int64]func(ev wire.Event, err error) // called by the reader
}

func newWatcher(name string, at *instance, channels []string, book *attendance) *watcher {
	return &watcher{name: name, at: at, channels: channels, book: book, ended: make(chan struct{})}
}

// label is the watcher as others see it in a channel.
func (w *watcher) label() string { return ownLabel(w.name) }

// start lets it watch until end is called; it returns at once.
func (w *watcher) start(ctx context.Context) {
	ctx, w.leave = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(w.ended)
		for {
			_ = w.sit(ctx)
			if !pause(ctx, watcherAgain) {
				return
			}
		}
	}()
}

func (w *watcher) end() {
	w.leave()
	<-w.ended
}

// sit is one connection, from its beginning to its end.
func (w *watcher) sit(ctx context.Context) error {
	conn, err := (&net.Dialer{Timeout: watcherCall}).DialContext(ctx, "tcp", w.at.tcp)
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.conn, w.waiting = conn, map[int64]func(wire.Event, error){}
	w.mu.Unlock()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	var reading sync.WaitGroup
	defer reading.Wait()
	reading.Go(func() {
		w.read(conn, func(r roll) { // not by the reader, who would wait for himself
			reading.Go(func() { _ = w.look(ctx, r) })
		})
		w.gone()
	})
	if err := w.follow(ctx); err != nil {
		conn.Close()
		return err
	}
	return nil // the reader goes on until the connection ends
}

// follow connects and subscribes, and reads who is there.
func (w *watcher) follow(ctx context.Context) error {
	err := w.call(ctx, wire.Request{Type: wire.TypeConnect, Client: w.name, User: w.name}, nil)
	for i := 0; err == nil && i < len(w.channels); i++ {
		r := roll{w.name, w.channels[i]}
		ofUser := strings.HasPrefix(r.channel, userPrefix)
		err = w.call(ctx, wire.Request{Type: wire.TypeSubscribe, Channel: r.channel, Presence: !ofUser}, func(wire.Event) {
			w.book.open(r, &present{known: ofUser, firm: ofUser}) // of a user one is told at once
		})
		if err == nil && !ofUser {
			err = w.look(ctx, r)
		}
	}
	return err
}

// look reads who is there when the watcher begins to follow.
func (w *watcher) look(ctx context.Context, r roll) error {
	for cursor := ""; ; {
		var names []string
		req := wire.Request{Type: wire.TypePresence, Channel: r.channel, Cursor: cursor, Limit: mostMembers}
		err := w.call(ctx, req, func(ev wire.Event) {
			names, cursor = append(names, labels(ev.Clients)...), ev.Next
			if cursor == "" {
				w.book.page(r, w.others(names))
			}
		})
		if err != nil || cursor == "" {
			return err
		}
	}
}

// crowd is what an answer says of a channel.
type crowd struct {
	names        []string
	count, users int
}

// ask reads who is in a channel over the socket.
func (w *watcher) ask(ctx context.Context, channel string) (c crowd, err error) {
	for cursor := ""; ; {
		req := wire.Request{Type: wire.TypePresence, Channel: channel, Cursor: cursor, Limit: mostMembers}
		err := w.call(ctx, req, func(ev wire.Event) {
			if c.names, c.count = append(c.names, labels(ev.Clients)...), *ev.Count; ev.Users != nil {
				c.users = *ev.Users
			}
			cursor = ev.Next
		})
		if err != nil || cursor == "" {
			return c, err
		}
	}
}

// call sends a request and waits until its answer was handled. then is called by the reader, before
// anything that came behind the answer.
func (w *watcher) call(ctx context.Context, req wire.Request, then func(wire.Event)) error {
	ctx, cancel := context.WithTimeout(ctx, watcherCall)
	defer cancel()
	done := make(chan error, 1)
	w.mu.Lock()
	conn := w.conn
	if conn != nil {
		w.ref++
		req.Ref = wire.RefOf(w.ref)
		w.waiting[w.ref] = func(ev wire.Event, err error) {
			if err == nil && then != nil {
				then(ev)
			}
			done <- err
		}
	}
	w.mu.Unlock()
	if conn == nil {
		return errAway
	}
	if err := w.send(conn, req); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	w.mu.Lock()
	_, there := w.waiting[req.Ref.Value]
	delete(w.waiting, req.Ref.Value)
	w.mu.Unlock()
	if !there { // it is being answered
		return <-done
	}
	return fmt.Errorf("%s of %q at %s: %w", req.Type, req.Channel, w.at.name, ctx.Err())
}

func (w *watcher) send(conn net.Conn, req wire.Request) error {
	line, err := json.Marshal(req)
	if err != nil {
		return err
	}
	_, err = conn.Write(append(line, '\n')) // one call is one line, whoever else writes
	return err
}

// read hands on what comes until the connection ends. again is called with a channel of which no more is told than that much
// has changed.
func (w *watcher) read(conn net.Conn, again func(roll)) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		if bytes.HasPrefix(line, []byte(`{"type":"message"`)) {
			continue // the other clients keep the books of these
		}
		ev, err := wire.DecodeEvent(line)
		if err != nil || ev.Type == wire.TypePing && w.send(conn, wire.Request{Type: wire.TypePong}) != nil {
			return
		}
		if ev.Ref.Set {
			w.answered(ev)
		} else if r := (roll{w.name, ev.Channel}); w.told(r, ev, time.Now()) {
			again(r)
		}
	}
}

// gone fails what waits for answers.
func (w *watcher) gone() {
	w.mu.Lock()
	waiting := w.waiting
	w.conn, w.waiting = nil, nil
	w.mu.Unlock()
	for _, answer := range waiting {
		answer(wire.Event{}, errAway)
	}
}

func (w *watcher) answered(ev wire.Event) {
	w.mu.Lock()
	answer := w.waiting[ev.Ref.Value]
	delete(w.waiting, ev.Ref.Value)
	w.mu.Unlock()
	var err error
	if ev.Type == wire.TypeError {
		err = fmt.Errorf("%s: %s: %s", w.at.name, ev.Code, ev.Message)
	}
	if answer != nil {
		answer(ev, err)
	}
}

// told enters what the broker says of itself. It is true when the watcher must read who is there.
func (w *watcher) told(r roll, ev wire.Event, at time.Time) (again bool) {
	switch ev.Type {
	case wire.TypeJoin, wire.TypeLeave:
		w.book.hear(r, label(ev.User, ev.Client), ev.Type == wire.TypeJoin, at)
	case wire.TypePresence:
		for _, m := range ev.Left {
			w.book.hear(r, label(m.User, m.Client), false, at)
		}
		for _, m := range ev.Joined {
			w.book.hear(r, label(m.User, m.Client), true, at)
		}
		if ev.Clients != nil {
			w.book.replace(r, w.others(labels(ev.Clients)))
		} else if len(ev.Left)+len(ev.Joined) == 0 {
			w.book.open(r, &present{})
			return true
		}
	}
	return false
}

// others are all but the watcher, who is told nothing of itself.
func (w *watcher) others(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return name == w.label() })
}

// ownLabel is that of a watcher: its client is named like its user.
func ownLabel(watcher string) string { return wire.ClientID(watcher, watcher) }

// label is the id of a client, or the user alone.
func label(user, client string) string { return cmp.Or(client, user) }

func labels(members *[]wire.Member) (names []string) {
	if members != nil {
		for _, m := range *members {
			names = append(names, label(m.User, m.Client))
		}
	}
	return names
}
