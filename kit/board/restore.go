package board

import (
	"context"
	"slices"
	"time"

	"switchboard/janitor/task"
	"switchboard/kit"
	"switchboard/kit/index"
)

const (
	// restoreEvery is the interval of the rounds of Restore.
	restoreEvery = time.Minute
	// restoreBatch is how many versions of cards are read in one round trip.
	restoreBatch = 100
)

// Restore returns a round of a janitor that makes the brokers compute again the cards of boards
// without one: of a board from before the list, and after a failover of the store that has lost
// them. It counts those that it noted.
func Restore(o CheckOptions) task.Round {
	return task.Round{Name: "boards", Every: restoreEvery, Calm: kit.RestoreCalm, Do: func(ctx context.Context) (int, error) {
		missing, err := o.unlisted(ctx)
		if err != nil || len(missing) == 0 {
			return 0, err
		}
		return len(missing), o.Index.Schedule(ctx, 0, missing...)
	}}
}

// CheckList compares the list of boards with those that have players. They differ for about a
// second after the first player of a board, and for up to a minute after the end of its last
// season.
func CheckList(o CheckOptions) task.Check {
	return task.Check{Name: "board list", Apart: task.Apart, Find: func(ctx context.Context) (found []task.Finding, err error) {
		report := func(board, problem string) {
			found = append(found, task.Finding{
				Subject: channelPrefix + board, Problem: problem,
				Remedy: "brokers correct it within a minute; if it stays, look at their logs and at the names in kit.boards",
			})
		}
		missing, err := o.unlisted(ctx)
		if err != nil {
			return nil, err
		}
		for _, board := range missing {
			report(board, "it has players, but is not in the list of boards")
		}
		names, err := o.Store.names(ctx)
		if err != nil {
			return nil, err
		}
		for cards, err := range index.Pages(ctx, o.Index, index.Query{List: allList}) {
			if err != nil {
				return nil, err
			}
			for _, c := range cards {
				if _, has := slices.BinarySearch(names, c.ID); !has {
					report(c.ID, "it is in the list of boards, but has no players")
				}
			}
		}
		return found, nil
	}}
}

// names returns the boards that have a player in any season, in order.
func (r *Redis) names(ctx context.Context) (names []string, err error) {
	parts, err := r.parts(ctx, scoresKey)
	for _, p := range parts {
		names = append(names, p.board)
	}
	return slices.Compact(names), err
}

// unlisted returns the boards that have a player, but no card.
func (o *CheckOptions) unlisted(ctx context.Context) (missing []string, err error) {
	names, err := o.Store.names(ctx)
	if err != nil {
		return nil, err
	}
	for batch := range slices.Chunk(names, restoreBatch) {
		versions, err := o.Index.Versions(ctx, batch...)
		if err != nil {
			return nil, err
		}
		for i, version := range versions {
			if version == 0 {
				missing = append(missing, batch[i])
			}
		}
	}
	return missing, nil
}
