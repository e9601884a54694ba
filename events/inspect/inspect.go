// Package inspect shows operators the events of a store: how many wait, and the dead letters.
package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"

	"switchboard/broker/api"
	"switchboard/events"
	"switchboard/internal/wire"
	"switchboard/registry"
)

// Inspector implements [api.Webhooks].
type Inspector struct {
	store    events.Store
	receiver api.Receiver
}

var _ api.Webhooks = (*Inspector)(nil)

// New returns an Inspector of a store whose events of the wanted kinds are sent to a URL. Nil means
// all kinds.
func New(store events.Store, receiver string, wanted []events.Kind) *Inspector {
	if wanted == nil {
		wanted = events.Kinds
	}
	i := &Inspector{store: store, receiver: api.Receiver{URL: withoutSecrets(receiver)}}
	for _, k := range wanted {
		i.receiver.Events = append(i.receiver.Events, string(k))
	}
	return i
}

// withoutSecrets returns a URL without user, password, query and fragment.
func withoutSecrets(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// Backlog implements [api.Webhooks].
func (i *Inspector) Backlog(ctx context.Context) (api.Backlog, error) {
	b, err := events.ReadBacklog(ctx, i.store)
	answer := api.Backlog{Waiting: b.Waiting, Dead: b.Dead, Dropped: b.Dropped, Endpoints: []api.Receiver{i.receiver}}
	answer.Attempts = b.Attempts
	if !b.Oldest.IsZero() {
		answer.Oldest = b.Oldest.UnixMilli()
	}
	if !b.RetryAt.IsZero() {
		answer.RetryAt = b.RetryAt.UnixMilli()
	}
	if last := b.Answer; !last.At.IsZero() {
		answer.Last = &api.Attempt{At: last.At.UnixMilli(), Status: last.Status, Error: last.Error}
	}
	return answer, err
}

// DeadLetters implements [api.Webhooks].
func (i *Inspector) DeadLetters(ctx context.Context, cursor string, limit int) (list []api.DeadLetter, next string, err error) {
	page, next, err := events.ReadDeadLetters(ctx, i.store, cursor, limit)
	if errors.Is(err, events.ErrBadCursor) {
		err = registry.ErrBadCursor
	}
	for _, l := range page {
		var event struct {
			ID string `json:"id"`
		}
		_ = json.Unmarshal(l.Event, &event) // an event without an id is shown without it
		list = append(list, api.DeadLetter{ID: event.ID, Reason: string(l.Reason), At: l.At.UnixMilli(), Event: l.Event})
	}
	return list, next, err
}

// Retry implements [api.Webhooks].
func (i *Inspector) Retry(ctx context.Context) (int, error) { return events.RequeueAll(ctx, i.store) }

// Change implements [api.Webhooks].
func (i *Inspector) Change(ctx context.Context, event string, retry bool) (bool, error) {
	found, err := events.ChangeLetter(ctx, i.store, event, retry)
	if errors.Is(err, events.ErrFull) {
		err = wire.Errorf(wire.Unavailable, "the list of events that wait is full")
	}
	return found, err
}
