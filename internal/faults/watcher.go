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

	"switchboard/internal/await"
	"switchboard/internal/testbed"
	"switchboard/internal/wire"
)

const (
	watcherReconnectDelay = 100 * time.Millisecond // between two connections
	watcherCallTimeout    = 5 * time.Second        // until an answer
	pageLimit             = 256                    // members of one page
)

var errNotConnected = errors.New("the watcher is not connected")

// watcher is a connection to one broker that watches channels. It uses raw TCP and not package
// client, so that no library filters the events. When the broker dies it reconnects to the same
// one.
type watcher struct {
	name     string // of the client and of the user
	broker   *testbed.Broker
	channels []string // watched channels, among them user channels
	journal  *presenceJournal

	cancel context.CancelFunc
	ended  chan struct{}

	mu      sync.Mutex // guards the fields below, and writing to conn
	conn    net.Conn   // nil while disconnected
	ref     int64
	waiting map[int64]func(ev wire.Event, err error) // by ref; called by the reader
}

func newWatcher(name string, broker *testbed.Broker, channels []string, journal *presenceJournal) *watcher {
	return &watcher{name: name, broker: broker, channels: channels, journal: journal, ended: make(chan struct{})}
}

// clientID returns the watcher's client id.
func (w *watcher) clientID() string { return watcherClientID(w.name) }

// start starts watching. It returns at once; stop ends it.
func (w *watcher) start(ctx context.Context) {
	ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(w.ended)
		for {
			_ = w.connectOnce(ctx)
			if await.Pause(ctx, watcherReconnectDelay) != nil {
				return
			}
		}
	}()
}

func (w *watcher) stop() {
	w.cancel()
	<-w.ended
}

// connectOnce connects, subscribes, and returns when the connection has ended.
func (w *watcher) connectOnce(ctx context.Context) error {
	conn, err := (&net.Dialer{Timeout: watcherCallTimeout}).DialContext(ctx, "tcp", w.broker.TCP)
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
		w.read(conn, func(key viewKey) { // in a goroutine: the reader must not wait for its own answer
			reading.Go(func() {
				if w.readMembers(ctx, key) != nil {
					conn.Close() // the next connection reads them
				}
			})
		})
		w.disconnected()
	})
	if err := w.subscribeAll(ctx); err != nil {
		conn.Close()
		return err
	}
	return nil // the reader runs until the connection ends
}

// subscribeAll connects, subscribes to all channels and reads their members.
func (w *watcher) subscribeAll(ctx context.Context) error {
	err := w.call(ctx, wire.Request{Type: wire.TypeConnect, Client: w.name, Token: tokenOf(w.name)}, nil)
	for i := 0; err == nil && i < len(w.channels); i++ {
		key := viewKey{w.name, w.channels[i]}
		ofUser := strings.HasPrefix(key.channel, userPrefix)
		err = w.call(ctx, wire.Request{Type: wire.TypeSubscribe, Channel: key.channel, Presence: !ofUser}, func(wire.Event) {
			w.journal.reset(key, &memberView{known: ofUser, settled: ofUser}) // a user's state is sent at once
		})
		if err == nil && !ofUser {
			err = w.readMembers(ctx, key)
		}
	}
	return err
}

// readMembers reads all pages of a channel's members into the journal.
func (w *watcher) readMembers(ctx context.Context, key viewKey) error {
	view := w.journal.view(key)
	var names []string
	return w.readPages(ctx, key, func(page []string, ev wire.Event) {
		if names = append(names, page...); ev.Next == "" {
			w.journal.applyPages(view, key, w.withoutSelf(names))
		}
	})
}

// presenceAnswer is an answer about the members of a channel.
type presenceAnswer struct {
	names        []string
	count, users int
}

// readPresence reads the members of a channel over the socket.
func (w *watcher) readPresence(ctx context.Context, channel string) (c presenceAnswer, err error) {
	err = w.readPages(ctx, viewKey{w.name, channel}, func(page []string, ev wire.Event) {
		if c.names, c.count = append(c.names, page...), *ev.Count; ev.Users != nil {
			c.users = *ev.Users
		}
	})
	return c, err
}

// readPages reads all pages of a channel's members. The reader calls onPage with the names of each
// page and with the answer.
func (w *watcher) readPages(ctx context.Context, key viewKey, onPage func(names []string, ev wire.Event)) error {
	for cursor, after := "", ""; ; {
		req := wire.Request{Type: wire.TypePresence, Channel: key.channel, Cursor: cursor, Limit: pageLimit}
		err := w.call(ctx, req, func(ev wire.Event) {
			names, last := memberNames(ev.Clients), ""
			if ev.Next != "" && len(names) > 0 {
				last = names[len(names)-1]
			}
			w.journal.pageShown(key, after, last, w.withoutSelf(slices.Clone(names)))
			onPage(names, ev)
			cursor, after = ev.Next, last
		})
		if err != nil || cursor == "" {
			return err
		}
	}
}

// call sends a request and waits until its answer was handled. The reader calls onAnswer with the
// answer before it handles the next line. A nil onAnswer does nothing.
func (w *watcher) call(ctx context.Context, req wire.Request, onAnswer func(wire.Event)) error {
	ctx, cancel := context.WithTimeout(ctx, watcherCallTimeout)
	defer cancel()
	done := make(chan error, 1)
	w.mu.Lock()
	conn := w.conn
	if conn != nil {
		w.ref++
		req.Ref = wire.RefOf(w.ref)
		w.waiting[w.ref] = func(ev wire.Event, err error) {
			if err == nil && onAnswer != nil {
				onAnswer(ev)
			}
			done <- err
		}
	}
	w.mu.Unlock()
	if conn == nil {
		return errNotConnected
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
	_, waiting := w.waiting[req.Ref.Value]
	delete(w.waiting, req.Ref.Value)
	w.mu.Unlock()
	if !waiting { // the reader is handling the answer
		return <-done
	}
	return fmt.Errorf("%s of %q at %s: %w", req.Type, req.Channel, w.broker.Name, ctx.Err())
}

func (w *watcher) send(conn net.Conn, req wire.Request) error {
	line, err := json.Marshal(req)
	if err != nil {
		return err
	}
	_, err = conn.Write(append(line, '\n')) // one write is one line, also with concurrent writers
	return err
}

// read handles lines until the connection ends. It calls onChanged with each channel whose members
// must be read again.
func (w *watcher) read(conn net.Conn, onChanged func(viewKey)) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		if bytes.HasPrefix(line, []byte(`{"type":"message"`)) {
			continue // the other clients record messages
		}
		ev, err := wire.DecodeEvent(line)
		if err != nil || ev.Type == wire.TypePing && w.send(conn, wire.Request{Type: wire.TypePong}) != nil {
			return
		}
		if ev.Ref.Set {
			w.handleAnswer(ev)
		} else if key := (viewKey{w.name, ev.Channel}); w.handleEvent(key, ev, time.Now()) {
			onChanged(key)
		}
	}
}

// disconnected fails the calls that wait for answers.
func (w *watcher) disconnected() {
	w.mu.Lock()
	waiting := w.waiting
	w.conn, w.waiting = nil, nil
	w.mu.Unlock()
	for _, answer := range waiting {
		answer(wire.Event{}, errNotConnected)
	}
}

func (w *watcher) handleAnswer(ev wire.Event) {
	w.mu.Lock()
	answer := w.waiting[ev.Ref.Value]
	delete(w.waiting, ev.Ref.Value)
	w.mu.Unlock()
	var err error
	if ev.Type == wire.TypeError {
		err = fmt.Errorf("%s: %s: %s", w.broker.Name, ev.Code, ev.Message)
	}
	if answer != nil {
		answer(ev, err)
	}
}

// handleEvent records an event. It returns true if the watcher must read the members again.
func (w *watcher) handleEvent(key viewKey, ev wire.Event, at time.Time) (reread bool) {
	switch ev.Type {
	case wire.TypeJoin, wire.TypeLeave:
		w.journal.event(key, memberName(ev.User, ev.Client), ev.Type == wire.TypeJoin, at)
	case wire.TypePresence:
		for _, m := range ev.Left {
			w.journal.event(key, memberName(m.User, m.Client), false, at)
		}
		for _, m := range ev.Joined {
			w.journal.event(key, memberName(m.User, m.Client), true, at)
		}
		if ev.Clients != nil {
			w.journal.replaceMembers(key, w.withoutSelf(memberNames(ev.Clients)))
		} else if len(ev.Left)+len(ev.Joined) == 0 {
			w.journal.reset(key, &memberView{})
			return true
		}
	}
	return false
}

// withoutSelf removes the watcher itself, which receives no events about itself.
func (w *watcher) withoutSelf(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return name == w.clientID() })
}

// watcherClientID returns the client id of a watcher. Its client and its user have the same name.
func watcherClientID(watcher string) string { return wire.ClientID(watcher, watcher) }

// memberName returns the client id, or the user if there is none.
func memberName(user, client string) string { return cmp.Or(client, user) }

func memberNames(members *[]wire.Member) (names []string) {
	if members != nil {
		for _, m := range *members {
			names = append(names, memberName(m.User, m.Client))
		}
	}
	return names
}
