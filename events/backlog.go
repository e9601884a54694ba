package events

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// ErrBadCursor is returned by ReadDeadLetters for a malformed cursor.
var ErrBadCursor = errors.New("events: malformed cursor")

const (
	// lettersPerCall is the most dead letters that one call of the store reads or moves.
	lettersPerCall = 100
	// maxLetterBytes is about the most bytes of a page of dead letters.
	maxLetterBytes = 1 << 20
)

// Backlog describes the events that wait.
type Backlog struct {
	Waiting int       // not sent yet
	Dead    int       // dead letters
	Dropped int64     // dead letters for which there was no room
	Oldest  time.Time // since when the first of the waiting events waits; zero for none

	Attempts int       // failed attempts since the last successful one; of several shards, the most
	RetryAt  time.Time // of the next attempt, if the last one failed; of several shards, the first
	Answer   Answer    // the last one
}

// ReadBacklog returns the sum of all shards.
func ReadBacklog(ctx context.Context, s Store) (sum Backlog, err error) {
	var shards [Shards]Backlog
	group, ctx := errgroup.WithContext(ctx)
	for i := range shards {
		group.Go(func() (err error) {
			shards[i], err = s.Backlog(ctx, i)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return Backlog{}, err
	}
	for _, b := range shards {
		sum.Waiting += b.Waiting
		sum.Dead += b.Dead
		sum.Dropped += b.Dropped
		sum.Oldest, sum.RetryAt = earlier(sum.Oldest, b.Oldest), earlier(sum.RetryAt, b.RetryAt)
		sum.Attempts = max(sum.Attempts, b.Attempts)
		if b.Answer.At.After(sum.Answer.At) {
			sum.Answer = b.Answer
		}
	}
	return sum, nil
}

// earlier returns the earlier of two times; zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// ReadDeadLetters returns a page of at most n dead letters, shard after shard, in each of them the
// oldest first. The first cursor is ""; next is "" after the last page. If letters are moved
// between two calls, the second one may skip some.
func ReadDeadLetters(ctx context.Context, s Store, cursor string, n int) (page []DeadLetter, next string, err error) {
	shard, skip, err := parseLetterCursor(cursor)
	if err != nil {
		return nil, "", err
	}
	bytes := 0
	for shard < Shards {
		if len(page) == n || bytes >= maxLetterBytes {
			return page, strconv.Itoa(shard) + "/" + strconv.Itoa(skip), nil
		}
		letters, err := s.DeadLetters(ctx, shard, skip, min(n-len(page), lettersPerCall))
		if err != nil {
			return nil, "", err
		}
		for _, l := range letters {
			bytes += len(l.Event)
		}
		page, skip = append(page, letters...), skip+len(letters)
		if len(letters) == 0 {
			shard, skip = shard+1, 0
		}
	}
	return page, "", nil
}

// parseLetterCursor parses <shard>/<letters before the page>.
func parseLetterCursor(cursor string) (shard, skip int, err error) {
	if cursor == "" {
		return 0, 0, nil
	}
	first, second, _ := strings.Cut(cursor, "/")
	shard, err1 := strconv.Atoi(first)
	skip, err2 := strconv.Atoi(second)
	if err1 != nil || err2 != nil || shard < 0 || shard >= Shards || skip < 0 {
		return 0, 0, fmt.Errorf("%w %.40q", ErrBadCursor, cursor)
	}
	return shard, skip, nil
}

// RequeueAll queues all dead letters for delivery again, while there is room, and returns their
// number. It does not queue letters that arrive meanwhile.
func RequeueAll(ctx context.Context, s Store) (moved int, err error) {
	for shard := range Shards {
		b, err := s.Backlog(ctx, shard)
		for err == nil && b.Dead > 0 {
			var n int
			n, err = s.Requeue(ctx, shard, min(b.Dead, lettersPerCall))
			moved += n
			if b.Dead -= n; n == 0 { // the outbox is full
				break
			}
		}
		if err != nil {
			return moved, err
		}
	}
	return moved, nil
}

// ChangeLetter removes the dead letter of the event with an id, and reports whether there was one.
// With retry, the event is queued for delivery again; the error is ErrFull if there is no room.
func ChangeLetter(ctx context.Context, s Store, id string, retry bool) (bool, error) {
	// The id does not tell the shard of each event.
	for shard := range Shards {
		if found, err := s.Letter(ctx, shard, id, retry); found || err != nil {
			return found, err
		}
	}
	return false, nil
}
