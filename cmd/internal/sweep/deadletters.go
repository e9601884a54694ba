package sweep

import (
	"bufio"
	"context"
	"encoding/json"
	"io"

	"github.com/rs/zerolog"

	"switchboard/events"
)

// lettersPerCall is the number of dead letters that one call reads or moves.
const lettersPerCall = 100

// letter is one line of the output.
type letter struct {
	Shard   int             `json:"shard"`
	GivenUp int64           `json:"given_up"` // Unix ms
	Reason  events.Reason   `json:"reason"`
	Event   json.RawMessage `json:"event"`
}

// deadLetters prints all dead letters, oldest first in each shard. With retry, it also queues the
// printed ones for delivery again, under their ids.
func deadLetters(ctx context.Context, store events.Store, retry bool, stdout io.Writer, log zerolog.Logger) error {
	out := bufio.NewWriter(stdout)
	printed, retried := 0, 0
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
			moved, err := store.Requeue(ctx, shard, min(left, lettersPerCall))
			if err != nil {
				return err
			}
			if moved == 0 { // the outbox is full; the rest stay dead letters
				break
			}
			left, retried = left-moved, retried+moved
		}
	}
	log.Info().Int("dead_letters", printed).Int("retried", retried).Msg("printed all dead letters")
	return nil
}

func printShard(ctx context.Context, store events.Store, shard int, out io.Writer) (n int, err error) {
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	for {
		page, err := store.DeadLetters(ctx, shard, n, lettersPerCall)
		if err != nil {
			return n, err
		}
		for _, l := range page {
			if err := lines.Encode(letter{shard, l.At.UnixMilli(), l.Reason, l.Event}); err != nil {
				return n, err
			}
			n++
		}
		if len(page) < lettersPerCall {
			return n, nil
		}
	}
}
