package api

import (
	"context"
	"errors"
	"net/http"

	"switchboard/internal/wire"
	"switchboard/queue"
)

// clientQueue answers messages that wait for a client. It does not acknowledge them. With ?wait, it
// waits for one if there is none.
func (a api) clientQueue(r *http.Request, q messageQuery) (any, error) {
	client, err := pathClient(r)
	if err != nil {
		return nil, err
	}
	record, page, err := a.awaitQueue(r.Context(), client, q)
	return struct {
		Client string `json:"client"`
		messagePage
		Count int `json:"count"` // of all messages that wait
	}{client, newMessagePage(page, q.after), record.Queued}, err
}

// awaitQueue reads a client's queue, and waits for a message if there is none after the id.
func (a api) awaitQueue(ctx context.Context, client string, q messageQuery) (record queue.Client, page queue.Page, err error) {
	changed, stop := a.WatchClient(client)
	defer stop()
	for {
		record, page, err = a.readQueue(ctx, client, q.after, q.limit)
		if err != nil || hasNews(page) {
			return record, page, err
		}
		if again, err := q.on(ctx, changed, nextPoll()); !again {
			return record, page, err
		}
	}
}

// readQueue reads a client's record and its messages after an id. It reads the messages only if
// there may be any.
func (a api) readQueue(ctx context.Context, client string, after int64, limit int) (queue.Client, queue.Page, error) {
	record, known, err := a.Queue.Client(ctx, client)
	page := queue.Page{Last: record.Last, Complete: true}
	if known && record.Last != after {
		page, err = a.Queue.ReadClient(ctx, client, after, limit)
	}
	switch {
	case err == nil && !known, errors.Is(err, queue.ErrForgotten):
		return record, page, wire.Errorf(wire.NotFound, "client %s is not known", client)
	case err != nil:
		return record, page, err
	}
	// The client has received the messages up to the one that it acknowledged. If the last id is below
	// after, the store has lost messages.
	page.Complete = max(after, record.Acked) >= page.Floor && after <= page.Last
	return record, page, nil
}
