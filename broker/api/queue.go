package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// clientQueue answers messages that wait for a client. It does not acknowledge them. With ?wait, it
// waits for one if there is none.
func (a api) clientQueue(w http.ResponseWriter, r *http.Request) {
	client := wire.ClientID(r.PathValue("user"), r.PathValue("client"))
	err := wire.CheckClientID(client)
	after, err1 := QueryInt(r, "after", 0, 0, state.MaxNumber)
	_, limit, err2 := page(r, 1)
	if err := cmp.Or(err, err1, err2); err != nil {
		a.writeError(w, err)
		return
	}
	wait, stop, err := a.startWait(w, r)
	if err != nil {
		a.writeError(w, err)
		return
	}
	defer stop()
	record, page, err := a.awaitQueue(r.Context(), wait, client, after, limit)
	if err != nil {
		a.writeError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, struct {
		Client string `json:"client"`
		messagePage
		Count int `json:"count"` // of all messages that wait
	}{client, newMessagePage(page, after), record.Queued})
}

// awaitQueue reads a client's queue, and waits for a message if there is none after the id.
func (a api) awaitQueue(
	ctx context.Context, wait wait, client string, after int64, limit int,
) (record queue.Client, page queue.Page, err error) {
	changed, stop := a.WatchClient(client)
	defer stop()
	for {
		record, page, err = a.readQueue(ctx, client, after, limit)
		if err != nil || hasNews(page) {
			return record, page, err
		}
		if again, err := wait.on(ctx, changed, nextPoll()); !again {
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
