package board

import (
	"bytes"
	"context"
	"encoding/json"

	"switchboard/internal/state"
	"switchboard/queue"
)

// storedTop is the value of the field top.
type storedTop struct {
	Season  string `json:"season"`
	Entries []struct {
		Player string `json:"player"`
		Score  int64  `json:"score"`
	} `json:"entries"`
}

// checkTop compares the field top of a board with its first ten entries. The field changes with
// them, so they belong together if it is the same before and after they are read. A field that
// changes all the time is not compared.
func (c *checker) checkTop(ctx context.Context, board string) error {
	const remedy = "remove the field top; the next submitted score sets it"
	for range maxTries {
		before, err := c.readTop(ctx, board)
		if err != nil {
			return err
		}
		var top storedTop
		malformed := before.ID != 0 && json.Unmarshal(before.Value, &top) != nil
		entries, err := c.Store.read(ctx, query{board: board, season: season{id: top.Season}, sign: 1, limit: topSize})
		if err != nil {
			return err
		}
		after, err := c.readTop(ctx, board)
		if err != nil {
			return err
		}
		if before.ID != after.ID || !bytes.Equal(before.Value, after.Value) {
			continue
		}
		switch {
		case malformed:
			c.report(boardPart{board: board}, remedy, "the field top is malformed")
		case before.ID == 0 && len(entries.entries) > 0: // of a board without seasons
			c.report(boardPart{board: board}, "the next submitted score sets it", "the field top is absent, but the board has players")
		case before.ID != 0 && !top.shows(entries.entries):
			c.report(boardPart{board: board}, remedy, "the field top does not show the first ten entries")
		}
		return nil
	}
	return nil
}

// shows reports whether the field has the entries. Their scores are places.
func (t *storedTop) shows(entries []Entry) bool {
	if len(t.Entries) != len(entries) {
		return false
	}
	ascending, descending := true, true
	for i, e := range t.Entries {
		if e.Player != entries[i].Player {
			return false
		}
		ascending, descending = ascending && e.Score == entries[i].Score, descending && e.Score == -entries[i].Score
	}
	return ascending || descending
}

// readTop returns the field top, or an empty field.
func (c *checker) readTop(ctx context.Context, board string) (state.Field, error) {
	o := c.States.ReadStates(ctx, []queue.StateRead{{Channel: channelPrefix + board, Fields: []string{topField}}})[0]
	if o.Err != nil || len(o.Value.Fields) == 0 {
		return state.Field{}, o.Err
	}
	return *o.Value.Fields[0].Field, nil
}
