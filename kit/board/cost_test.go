package board

import (
	"context"
	"testing"

	"switchboard/broker/extension"
	"switchboard/kit/kittest"
)

// countedStore counts the reads of a store.
type countedStore struct {
	Store
	reads int
}

func (c *countedStore) read(ctx context.Context, q query) (part, error) {
	c.reads++
	return c.Store.read(ctx, q)
}

// TestCosts checks that each call is one script, as the page of the documentation says: a change of
// the channel's state, or a read of the board.
func TestCosts(t *testing.T) {
	var cost kittest.Cost
	s, store := kittest.NewMemory(), &countedStore{Store: NewMemory()}
	s.Queue = cost.Queue(s.Queue)
	var boards *Boards
	s.Start(t, kittest.With(func(h *extension.Host) (extension.Extension, error) {
		var err error
		if boards, err = NewBoards(h, Options{Store: store, Boards: map[string]Board{"chess": {}}}); err != nil {
			return extension.Extension{}, err
		}
		return boards.Extension(), nil
	}))
	ctx := t.Context()
	const change, read = "0 | 1 | 0", "0 | 0 | 0"
	check := func(operation string, err error, want string) {
		t.Helper()
		reads := 0
		if want == read {
			reads = 1
		}
		if got := cost.String(); err != nil || got != want || store.reads != reads {
			t.Errorf("%s: %s and %d reads of the board, want %s and %d: %v", operation, got, store.reads, want, reads, err)
		}
		store.reads = 0
	}
	_ = cost.String() // of the start
	_, err := boards.Submit(ctx, Score{Board: "chess", Player: "amy", Score: 3})
	check("submit", err, change)
	_, err = boards.Top(ctx, "chess", "", 0, 10)
	check("top", err, read)
	_, err = boards.Around(ctx, "chess", "amy", "", 2)
	check("around", err, read)
	_, err = boards.Rank(ctx, "chess", "amy", "")
	check("rank", err, read)
	_, err = boards.Remove(ctx, "chess", "amy", "")
	check("remove", err, change)
}
