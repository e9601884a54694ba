package kit

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"switchboard/kit/index"
	"switchboard/queue"
)

// checkBatch is how many documents a check reads at once.
const checkBatch = 100

// A Visit looks at documents, at most 100.
type Visit = func(ctx context.Context, ids []string) error

// EachBatch calls the visits for all documents by their channels, each once: a document without a
// card is in no list. A visit is for the channels with a prefix, whose rest is the id. known are
// the channels of documents.
func EachBatch(ctx context.Context, s States, visits map[string]Visit) (known map[string]bool, err error) {
	known, ids := map[string]bool{}, map[string][]string{}
	for channel, err := range s.StateChannels(ctx) {
		if err != nil {
			return known, err
		}
		for prefix, visit := range visits {
			id, found := strings.CutPrefix(channel, prefix)
			if !found || known[channel] {
				continue
			}
			known[channel], ids[prefix] = true, append(ids[prefix], id)
			if len(ids[prefix]) == checkBatch {
				if err := visit(ctx, ids[prefix]); err != nil {
					return known, err
				}
				ids[prefix] = nil
			}
		}
	}
	for _, prefix := range slices.Sorted(maps.Keys(ids)) { // equal findings in each look
		if rest := ids[prefix]; len(rest) > 0 {
			if err := visits[prefix](ctx, rest); err != nil {
				return known, err
			}
		}
	}
	return known, nil
}

// EachUnknown calls visit for the documents of a list that have no known channel: a document that
// is new, or a card whose document is lost.
func EachUnknown(ctx context.Context, i index.Index, list, prefix string, known map[string]bool, visit Visit) error {
	for cards, err := range index.Pages(ctx, i, index.Query{List: list, Limit: checkBatch}) {
		if err != nil {
			return err
		}
		var ids []string
		for _, c := range cards {
			if !known[prefix+c.ID] {
				ids = append(ids, c.ID)
			}
		}
		if len(ids) > 0 {
			if err := visit(ctx, ids); err != nil {
				return err
			}
		}
	}
	return nil
}

// StatePages iterates over the pages of the state of a channel, beginning with that of the read. It
// ends after an error.
func StatePages(ctx context.Context, r StateReader, read queue.StateRead) iter.Seq2[*queue.StatePage, error] {
	return func(yield func(*queue.StatePage, error) bool) {
		for {
			o := r.ReadStates(ctx, []queue.StateRead{read})[0]
			if o.Err != nil {
				yield(&o.Value, fmt.Errorf("read %s: %w", read.Channel, o.Err))
				return
			}
			if read.Cursor = o.Value.Next; !yield(&o.Value, nil) || read.Cursor == "" {
				return
			}
		}
	}
}
