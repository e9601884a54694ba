package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"switchboard/client"
	"switchboard/internal/ssetest"
	"switchboard/internal/wire"
)

// inboxWindow is the number of inbox messages after which a client connects again, because only
// that acknowledges them. The limit of a broker, queue.MaxWindow, would never be reached here.
const inboxWindow = 8

// eventStream is the connection of a client that uses Server-Sent Events. It has no filter for
// duplicates: it resumes with the id of its last event, and nothing may come twice.
type eventStream struct {
	client  *testClient
	http    http.Client
	sse     ssetest.Client
	urls    []string
	next    int             // index in urls of the next request
	missing map[string]bool // channels without a confirmed subscription so far
	inbox   int             // inbox messages of this stream
	ready   chan struct{}   // closed when all subscriptions were confirmed
}

// newEventStream returns a stream that goes to the next of the addresses at each request.
func newEventStream(c *testClient, addrs []string) *eventStream {
	s := &eventStream{client: c, missing: map[string]bool{}, ready: make(chan struct{})}
	query := url.Values{"client": {wire.ClientPart(c.clientSpec.client)}, "token": {tokenOf(c.user)}, "channel": c.channels}
	for _, addr := range addrs {
		s.urls = append(s.urls, "http://"+addr+"/sse?"+query.Encode())
	}
	for _, channel := range c.channels {
		s.missing[channel] = true
	}
	s.http.Transport = &http.Transport{DisableKeepAlives: true}
	s.sse = ssetest.Client{URL: s.nextURL, HTTP: &s.http, OnOpen: s.opened, OnEvent: s.handle, OnEnd: s.ended, Retry: backoffMin}
	return s
}

func (s *eventStream) nextURL() string {
	s.next++
	return s.urls[(s.next-1)%len(s.urls)]
}

func (s *eventStream) opened(resumed bool) {
	s.inbox = 0
	if resumed {
		s.client.journal.clientResumed(sse)
	}
}

func (s *eventStream) ended(error) { s.client.setServer("") }

// run keeps the stream open until ctx ends.
func (s *eventStream) run(ctx context.Context) error {
	err := s.sse.Run(ctx)
	s.client.setServer("")
	return err
}

// awaitReady waits until all subscriptions were confirmed.
func (s *eventStream) awaitReady(ctx context.Context) error {
	select {
	case <-s.ready:
		return nil
	case <-s.client.ended:
		return fmt.Errorf("the event stream ended: %w", s.client.err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// errRefused and errWindow end a stream, and the client resumes with another.
var (
	errRefused = errors.New("a subscription was refused")
	errWindow  = errors.New("the messages of the inbox need an acknowledgement")
)

// handle handles one event.
func (s *eventStream) handle(e ssetest.Event) error {
	event, err := wire.DecodeEvent([]byte(e.Data))
	if err != nil {
		return fmt.Errorf("%s: %w", e.Name, err)
	}
	switch event.Type {
	case wire.TypeConnected:
		s.client.setServer(event.Server)
	case wire.TypeSubscribed:
		s.subscribed(event.Channel)
	case wire.TypeError:
		return errRefused
	case wire.TypeGap:
		s.client.onGap(client.Gap{Channel: event.Channel, After: *event.After, ID: *event.ID})
	case wire.TypeMessage:
		if event.StateEvent != nil && event.Erase != 0 {
			s.client.onErase(client.Erased{Channel: event.Channel, ID: event.Erase})
			return nil
		}
		s.client.onMessage(client.Message{Channel: event.Channel, ID: *event.ID, Data: json.RawMessage(event.Data)})
		if event.Channel == "" {
			if s.inbox++; s.inbox == inboxWindow {
				return errWindow
			}
		}
	}
	return nil
}

// subscribed records a confirmed subscription. It closes ready after the first of each channel.
func (s *eventStream) subscribed(channel string) {
	if !s.missing[channel] {
		return
	}
	if delete(s.missing, channel); len(s.missing) == 0 {
		close(s.ready)
	}
}
