package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"switchboard/client"
	"switchboard/cmd/internal/screen"
	"switchboard/internal/wire"
)

// maxLine is the longest line of the input, in bytes.
const maxLine = 4 << 20

// errQuit ends the command.
var errQuit = errors.New("quit")

// readCommands runs the lines of the standard input. After its end it waits while there are
// subscriptions. ended receives the result of Run, and has it again afterwards.
func (l *liveClient) readCommands(ctx context.Context, ended chan error) error {
	lines, failed := make(chan string), make(chan error, 1)
	go func() { // it ends with the process: a read of the standard input cannot be ended
		defer close(lines)
		scanner := bufio.NewScanner(l.stdin)
		scanner.Buffer(nil, maxLine)
		for scanner.Scan() {
			select {
			case lines <- scanner.Text():
			case <-ctx.Done():
				return
			}
		}
		failed <- scanner.Err()
	}()
	if screen.IsTerminal(l.stdin) {
		l.note("connected; help lists the commands, and Ctrl-D ends")
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			ended <- nil
			return err
		case line, open := <-lines:
			if !open {
				return l.afterInput(ctx, ended, <-failed)
			}
			if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			if l.execute(ctx, line) == errQuit {
				return nil
			}
		}
	}
}

// afterInput waits while there are subscriptions.
func (l *liveClient) afterInput(ctx context.Context, ended chan error, err error) error {
	l.mu.Lock()
	waits := len(l.subscribed) > 0 || l.flags.count > 0
	l.mu.Unlock()
	if err != nil || !waits || screen.IsTerminal(l.stdin) {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		ended <- nil
		return err
	}
}

// execute runs a command and prints the answer. It returns errQuit for quit.
func (l *liveClient) execute(ctx context.Context, line string) error {
	switch line {
	case "help":
		_, err := io.WriteString(l.stderr, verbsHelp)
		return err
	case "quit":
		return errQuit
	}
	r, err := parseLine(line)
	var e event
	if r.Type == wire.TypeSubscribe {
		l.order.Lock()
		defer l.order.Unlock()
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, l.timeout)
		defer cancel()
		e, err = l.send(ctx, r)
	}
	if err != nil && ctx.Err() != nil {
		return nil // the command ends
	}
	if err != nil {
		e = refusal(r.Ref, err)
		if l.first == nil {
			l.first = err
		}
	}
	if e.Ref = r.Ref; e.Type != "" {
		l.printEvent(e)
	}
	return nil
}

// send makes the call of the Go client for a message, and returns the event for its answer.
func (l *liveClient) send(ctx context.Context, r wire.Request) (event, error) {
	if r.Channel == "" && slices.Contains([]string{wire.TypeSubscribe, wire.TypeUnsubscribe, wire.TypePublish, wire.TypeState, wire.TypePresence, wire.TypeHere, wire.TypeHistory}, r.Type) {
		return event{}, usage("%s: the channel is missing", r.Type)
	}
	switch r.Type {
	case wire.TypeSubscribe:
		return l.subscribe(ctx, r)
	case wire.TypeUnsubscribe:
		l.mu.Lock()
		delete(l.subscribed, r.Channel)
		l.mu.Unlock()
		return event{Type: wire.TypeUnsubscribed, Channel: r.Channel}, l.Unsubscribe(ctx, r.Channel)
	case wire.TypePublish:
		done, err := l.Update(ctx, r.Channel, publishing(r))
		e := event{Type: wire.TypePublished, Channel: r.Channel, ID: &done.ID}
		if len(done.Numbers) > 0 {
			e.Fields = done.Numbers
		}
		return e, err
	case wire.TypeState:
		return l.readFields(ctx, r)
	case wire.TypePresence:
		members := []client.Member{}
		for m, err := range l.Members(ctx, r.Channel) {
			if err != nil {
				return event{}, err
			}
			members = append(members, m)
		}
		return event{Type: wire.TypePresence, Channel: r.Channel, Clients: &members, Count: len(members)}, nil
	case wire.TypeHere:
		if err := l.ShowHere(r.Channel, r.Data); err != nil {
			return event{}, err
		}
		return event{}, l.Ping(ctx) // the value is sent when the answer has arrived
	case wire.TypeHistory:
		after := int64(0)
		if r.After != nil {
			after = *r.After
		}
		page, err := l.History(ctx, r.Channel, after, r.Limit)
		return event{Type: wire.TypeHistory, Channel: r.Channel, Messages: &page.Messages, More: &page.More}, err
	case wire.TypeRequest:
		return l.ask(ctx, r)
	case wire.TypeRefresh:
		return l.refresh(ctx, r)
	case wire.TypePing:
		return event{Type: wire.TypePong}, l.Ping(ctx)
	}
	return event{}, usage("%q is not a message that this command sends", r.Type)
}

func (l *liveClient) subscribe(ctx context.Context, r wire.Request) (event, error) {
	o := client.SubscribeOptions{After: r.After, Presence: r.Presence}
	if r.StateRequest != nil && r.StateRequest.State != nil {
		o.State, o.Prefix = true, r.StateRequest.State.Prefix
	}
	s, err := l.Subscribe(ctx, r.Channel, o)
	if err != nil {
		return event{}, err
	}
	l.mu.Lock()
	l.subscribed[r.Channel] = true
	l.mu.Unlock()
	e := event{Type: wire.TypeSubscribed, Channel: r.Channel, ID: &s.ID}
	if r.After != nil {
		e.Recovered = &s.Recovered
	}
	return e, nil
}

// publishing is the clause of an update that publishes a message as it is.
func publishing(r wire.Request) client.Clause {
	return func(to *wire.Request) error {
		to.Data, to.Change = r.Data, r.Change
		if r.StateRequest != nil {
			to.StateRequest = r.StateRequest
		}
		return nil
	}
}

func (l *liveClient) readFields(ctx context.Context, r wire.Request) (event, error) {
	var q client.FieldsQuery
	if r.StateRequest != nil {
		q.Prefix = r.StateRequest.Prefix
	}
	e, all := event{Type: wire.TypeState, Channel: r.Channel}, map[string]field{}
	for page, err := range l.FieldsPages(ctx, r.Channel, q) {
		if err != nil {
			return e, err
		}
		if e.ID == nil {
			e.ID = &page.ID // of the oldest page: later changes of its fields are missing
		}
		maps.Copy(all, fieldsOf(page.Fields))
	}
	e.Fields = all
	return e, nil
}

// ask sends a request to the backend, or calls a method of the broker.
func (l *liveClient) ask(ctx context.Context, r wire.Request) (event, error) {
	e := event{Type: wire.TypeReply}
	var err error
	if r.Method != "" {
		err = l.Call(ctx, r.Method, r.Data, &e.Data)
	} else {
		e.Data, err = l.Request(ctx, r.Data)
	}
	e.Data = bytes.TrimSpace(e.Data)
	return e, err
}

// refresh sends the token of the message, or that of the file or variable again.
func (l *liveClient) refresh(ctx context.Context, r wire.Request) (event, error) {
	e, token := event{Type: wire.TypeRefreshed}, r.Token
	if token == "" {
		if l.token == nil {
			return e, usage("refresh: there is no token")
		}
		var err error
		if token, err = l.token(ctx); err != nil {
			return e, fmt.Errorf("refresh: %w", err)
		}
	}
	return e, l.Refresh(ctx, token)
}
