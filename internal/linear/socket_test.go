package linear

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	wsclient "switchboard/client"
	"switchboard/internal/state"
	"switchboard/internal/testbed"
	"switchboard/queue"
)

// socketStore is a store over a client's socket, by package client.
type socketStore struct {
	device
	brokers []string // host:port

	conn *testbed.Client
}

// connect connects and subscribes with the state.
func (s *socketStore) connect(ctx context.Context) error {
	_, name, _ := strings.Cut(s.device.client, "/")
	o := wsclient.Options{Client: name, User: s.user, BackoffMin: 10 * time.Millisecond, BackoffMax: 100 * time.Millisecond}
	for _, addr := range s.brokers {
		o.URLs = append(o.URLs, "ws://"+addr+"/ws")
	}
	conn, err := testbed.Connect(ctx, o)
	if err != nil {
		return err
	}
	s.conn = conn
	_, err = conn.Subscribe(ctx, channel, wsclient.SubscribeOptions{State: true})
	return err
}

func (s *socketStore) reconnect(ctx context.Context) error {
	if err := s.conn.Stop(); err != nil {
		return err
	}
	return s.connect(ctx)
}

// AppendChannel implements store. It repeats an update with a key until it is answered, since the
// answer does not say whether an earlier attempt has been applied.
func (s *socketStore) AppendChannel(ctx context.Context, push queue.ChannelPush) (queue.Appended, error) {
	for {
		a, err := s.publish(ctx, push)
		if push.Key == "" || !errors.Is(err, errNoAnswer) {
			return a, err
		}
	}
}

func (s *socketStore) publish(ctx context.Context, push queue.ChannelPush) (a queue.Appended, err error) {
	if push.Update == nil {
		a.ID, err = s.conn.Publish(ctx, channel, json.RawMessage(push.Data))
		return a, socketError(err)
	}
	done, err := s.conn.Update(ctx, channel, clauses(push)...)
	return queue.Appended{ID: done.ID, Numbers: done.Numbers}, socketError(err)
}

// clauses returns the clauses of an update.
func clauses(push queue.ChannelPush) []wsclient.Clause {
	list := []wsclient.Clause{wsclient.Data(json.RawMessage(push.Update.Data))}
	if push.Key != "" {
		list = append(list, wsclient.Key(push.Key))
	}
	for i, op := range push.Update.Ops {
		if i == 0 && op.TTL > 0 {
			list = append(list, wsclient.TTL(op.TTL))
		}
		switch op.Kind {
		case state.Set:
			list = append(list, wsclient.Set(op.Field, json.RawMessage(op.Value)))
		case state.Add:
			list = append(list, wsclient.AddWithin(op.Field, op.By, op.Min, op.Max))
		case state.Delete:
			list = append(list, wsclient.Del(op.Field))
		case state.Touch:
			list = append(list, wsclient.Touch(op.Field))
		}
	}
	for _, cond := range push.Update.If {
		switch cond.Kind {
		case state.IsID:
			list = append(list, wsclient.IfID(cond.Field, cond.ID))
		case state.IsAbsent:
			list = append(list, wsclient.IfAbsent(cond.Field))
		case state.Exists:
			list = append(list, wsclient.IfExists(cond.Field))
		}
	}
	return list
}

// socketError returns the error of a call as a refusal or errNoAnswer.
func socketError(err error) error {
	if errors.Is(err, wsclient.ErrUnknownOutcome) {
		return errNoAnswer
	}
	if r, ok := errors.AsType[*wsclient.Refusal](err); ok {
		shown := make(map[string]*state.Shown)
		for name, f := range r.Fields {
			if shown[name] = nil; f != nil {
				shown[name] = shownOf(*f)
			}
		}
		return refusalOf(r.Err, shown, r.Group, r.Max)
	}
	if e, ok := errors.AsType[*wsclient.Error](err); ok {
		return refusalOf(e, nil, "", 0)
	}
	return err
}

func shownOf(f wsclient.Field) *state.Shown {
	shown := &state.Shown{ID: f.ID, Value: f.Value, Away: f.Away}
	if !f.Until.IsZero() {
		shown.Until = f.Until.UnixMilli()
	}
	return shown
}

// ReadStates implements store.
func (s *socketStore) ReadStates(ctx context.Context, reads []queue.StateRead) []queue.Outcome[queue.StatePage] {
	q := reads[0]
	if len(q.Fields) > 0 {
		return []queue.Outcome[queue.StatePage]{{Err: fmt.Errorf("a client reads named fields: %v", q.Fields)}}
	}
	page, err := s.conn.ReadFields(ctx, channel, wsclient.FieldsQuery{Prefix: q.Prefix, Cursor: q.Cursor, Limit: q.Limit})
	shown := make(map[string]*state.Shown)
	for name, f := range page.Fields {
		shown[name] = shownOf(f)
	}
	return []queue.Outcome[queue.StatePage]{{Value: pageOf(page.ID, shown, nil, page.Next), Err: socketError(err)}}
}
