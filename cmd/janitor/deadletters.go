package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"

	"github.com/rs/zerolog"

	"switchboard/events"
)

// letters is how many dead letters are read, or moved, at once.
const letters = 100

// letter is a line of the output.
type letter struct {
	Shard   int             `json:"shard"`
	GivenUp int64           `json:"given_up"` // Unix ms
	Reason  events.Reason   `json:"reason"`
	Event   json.RawMessage `json:"event"`
}

// deadLetters prints all of them, oldest first in each shard. With retry as many as were printed go back to where they are
// sent from, under their ids.
func deadLetters(ctx context.Context, store events.Store, retry bool, stdout io.Writer, log zerolog.Logger) error {
	out := bufio.NewWriter(stdout)
	printed, again := 0, 0
	for shard := range events.Shards {
		n, err := printShard(ctx, store, shard, out)
		printed += n
		if err == nil {
			err = out.Flush()
		}
		if err != nil {
			return err
		}
		for left := n; retry && left > 0; {
			moved, err := store.Retry(ctx, shard, min(left, letters))
			if err != nil {
				return err
			}
			if moved == 0 { // the list is full; the rest waits here
				break
			}
			left, again = left-moved, again+moved
		}
	}
	log.Info().Int("dead_letters", printed).Int("retried", again).Msg("that is all")
	return nil
}

func printShard(ctx context.Context, store events.Store, shard int, out io.Writer) (n int, err error) {
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	for {
		page, err := store.Dead(ctx, shard, n, letters)
		if err != nil {
			return n, err
		}
		for _, l := range page {
			if err := lines.Encode(letter{shard, l.At.UnixMilli(), l.Reason, l.Event}); err != nil {
				return n, err
			}
			n++
		}
		if len(page) < letters {
			return n, nil
		}
	}
}
