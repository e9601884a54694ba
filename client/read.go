package client

import (
	"context"
	"fmt"
	"iter"

	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// FieldsQuery selects the fields for ReadFields.
type FieldsQuery struct {
	// Prefix selects the fields whose names begin with it. Zero means all fields that this client
	// may read.
	Prefix string
	// Cursor is the Next of the page before. Zero means the first page.
	Cursor string
	// Limit is the most fields of the page. Zero means as many as the broker gives.
	Limit int
}

// FieldsPage is a part of the fields of a channel, in the order of names.
type FieldsPage struct {
	Snapshot
	Next string // the cursor of the next page; "" for the last one
}

// ReadFields reads one page of the fields of a channel. It needs no subscription.
func (c *Client) ReadFields(ctx context.Context, channel string, query FieldsQuery) (FieldsPage, error) {
	if err := wire.CheckName("channel", channel); err != nil {
		return FieldsPage{}, err
	}
	if err := state.CheckPrefix(query.Prefix); err != nil {
		return FieldsPage{}, err
	}
	ev, err := c.roundTrip(ctx, wire.Request{
		Type: wire.TypeState, Channel: channel, Cursor: query.Cursor, Limit: query.Limit,
		StateRequest: &wire.StateRequest{Prefix: query.Prefix},
	})
	if err != nil {
		return FieldsPage{}, fmt.Errorf("fields of %s: %w", channel, err)
	}
	part := stateOf(ev)
	fields, err := decodeFields(part.Fields)
	if err != nil {
		return FieldsPage{}, fmt.Errorf("fields of %s: %w", channel, err)
	}
	page := FieldsPage{Snapshot: Snapshot{Channel: channel, Fields: make(map[string]Field, len(fields))}, Next: part.Cursor}
	if ev.ID != nil {
		page.ID = *ev.ID
	}
	for name, f := range fields {
		if f != nil {
			page.Fields[name] = *f
		}
	}
	return page, nil
}

// FieldsPages reads the fields of a channel page by page, until the last page or an error. Each
// page is consistent, but fields may change between two pages. To get all fields as of
// one message, subscribe with State.
func (c *Client) FieldsPages(ctx context.Context, channel string, query FieldsQuery) iter.Seq2[FieldsPage, error] {
	return func(yield func(FieldsPage, error) bool) {
		for {
			page, err := c.ReadFields(ctx, channel, query)
			if !yield(page, err) || err != nil || page.Next == "" {
				return
			}
			query.Cursor = page.Next
		}
	}
}
