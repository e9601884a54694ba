package index

import (
	"context"
	"iter"
)

// Pages iterates over the pages of a list, beginning with that of the query. It ends after an
// error.
func Pages(ctx context.Context, i Index, q Query) iter.Seq2[[]Card, error] {
	return func(yield func([]Card, error) bool) {
		for {
			page, err := i.List(ctx, q)
			if !yield(page.Cards, err) || err != nil {
				return
			}
			if q.Cursor = page.Next; q.Cursor == "" {
				return
			}
		}
	}
}

// IDs returns the ids of cards.
func IDs(cards []Card) []string {
	ids := make([]string, len(cards))
	for i := range cards {
		ids[i] = cards[i].ID
	}
	return ids
}
