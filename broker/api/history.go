package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"switchboard/broker/namespace"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// Watch follows the position of a channel, see hub.Watch.
type Watch interface {
	// Last returns the id of the last message that this server knows.
	Last() int64
	// Changed returns a channel that is closed as soon as Last differs from last.
	Changed(last int64) <-chan struct{}
	// Close ends the Watch.
	Close()
}

// messagePage is a page of messages in an answer.
type messagePage struct {
	Messages  []wire.Stored `json:"messages"`
	More      bool          `json:"more"`
	Recovered bool          `json:"recovered"` // no message is missing before the first one
	ID        int64         `json:"id"`        // the position after the page
}

// newMessagePage returns the answer for a page of the messages after the id `after`.
func newMessagePage(p queue.Page, after int64) messagePage {
	answer := messagePage{Messages: make([]wire.Stored, 0, len(p.Messages)), More: p.More, Recovered: p.Complete, ID: after}
	for _, m := range p.Messages {
		answer.ID = m.ID
		if _, _, lost := queue.Loss(m.Data); lost {
			answer.Recovered = false
		} else if stored, ok, _ := state.ShowStored(m.ID, m.Data, backendFilter); ok {
			answer.Messages = append(answer.Messages, stored)
		}
	}
	if !p.More {
		answer.ID = p.Last
	}
	return answer
}

// hasNews reports whether a call that waits for messages is answered with the page.
func hasNews(p queue.Page) bool { return len(p.Messages) > 0 || p.More || !p.Complete }

// history answers messages of a channel. With ?wait, it waits for one if there is none.
func (a api) history(r *http.Request, q messageQuery) (any, error) {
	name, err := PathName(r, "channel")
	if err == nil {
		err = a.checkAllowed(namespace.History, name)
	}
	if err != nil {
		return nil, err
	}
	page, err := a.readChannel(r.Context(), name, q)
	return struct {
		Channel string `json:"channel"`
		messagePage
	}{name, newMessagePage(page, q.after)}, err
}

// readChannel reads the messages after an id, and waits for one if there is none. While it waits,
// it reads again only if this server learns that the position of the channel has changed.
func (a api) readChannel(ctx context.Context, channel string, q messageQuery) (queue.Page, error) {
	if q.timeout == nil {
		return a.Queue.ReadChannel(ctx, channel, q.after, q.limit)
	}
	watch, err := a.Watch(ctx, channel)
	if err != nil {
		return queue.Page{}, err
	}
	defer watch.Close()
	page := queue.Page{Last: q.after, Complete: true}
	for {
		seen := watch.Last()
		if seen != q.after {
			if page, err = a.readOnce(ctx, channel, q.after, q.limit, seen); err != nil || hasNews(page) {
				return page, err
			}
		}
		if again, err := q.on(ctx, watch.Changed(seen), nil); !again {
			return page, err
		}
	}
}

// sharedReadTimeout bounds a read that several calls share. The read goes on if one of them ends.
const sharedReadTimeout = 5 * time.Second

// readOnce reads a page once for all calls that wait for the same one. seen is the last id that the
// caller knows. It is a part of the key, so that no call shares a read from before that message.
func (a api) readOnce(ctx context.Context, channel string, after int64, limit int, seen int64) (queue.Page, error) {
	key := channel + " " + strconv.FormatInt(after, 10) + " " + strconv.Itoa(limit) + " " + strconv.FormatInt(seen, 10)
	read := a.reads.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sharedReadTimeout)
		defer cancel()
		return a.Queue.ReadChannel(ctx, channel, after, limit)
	})
	select {
	case result := <-read:
		page, _ := result.Val.(queue.Page)
		return page, result.Err
	case <-ctx.Done():
		return queue.Page{}, ctx.Err()
	}
}
