package board

import (
	"cmp"
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// season is the time between two starts of a board.
type season struct {
	id         string // seasonLayout of its start, "" for a board without seasons
	start, end int64  // Unix ms: it has start, and not end
	forget     int64  // Unix ms: when its keys end, 0 for never. Without seasons, each change sets it
}

// noSeason is the word for the season of a board without seasons.
const noSeason = "-"

// word returns the id of the season as the stores write it: noSeason instead of "".
func (s season) word() string { return cmp.Or(s.id, noSeason) }

// seasonLayout is the form of the ids of seasons: their start in UTC.
const seasonLayout = "20060102T150405Z"

// previousSeason is the id by which callers name the season before the current one.
const previousSeason = "previous"

// always is the season of a board without seasons.
var always = season{end: state.MaxNumber}

// longestSeason bounds the search for the start of a season.
const longestSeason = 10 * 366 * 24 * time.Hour

// parseSeason parses a cron expression. Its times do not depend on the process: they are in UTC
// unless the expression names a time zone.
func parseSeason(expression string) (cron.Schedule, error) {
	parsed, err := cronParser.Parse(expression)
	if err != nil {
		return nil, err
	}
	schedule, ok := parsed.(*cron.SpecSchedule)
	if !ok { // @every counts from the time of the call
		return nil, fmt.Errorf("%q has no fixed times", expression)
	}
	if schedule.Location == time.Local {
		schedule.Location = time.UTC
	}
	if schedule.Next(time.Now()).IsZero() {
		return nil, fmt.Errorf("%q never comes", expression)
	}
	return schedule, nil
}

// seasonAt returns the season at a time. It is a pure function of the time and the schedule.
func (b *Board) seasonAt(at time.Time) season {
	if b.schedule == nil {
		return always
	}
	start := time.UnixMilli(0)
	for back := time.Minute; back < longestSeason; back *= 2 {
		if first := b.schedule.Next(at.Add(-back)); !first.IsZero() && !first.After(at) {
			start = first
			break
		}
	}
	end := b.schedule.Next(start)
	for !end.IsZero() && !end.After(at) {
		start, end = end, b.schedule.Next(end)
	}
	s := season{id: start.UTC().Format(seasonLayout), start: start.UnixMilli(), end: state.MaxNumber}
	if end.IsZero() {
		return s
	}
	s.end = end.UnixMilli()
	for range b.Keep {
		if next := b.schedule.Next(end); !next.IsZero() {
			end = next
		}
	}
	s.forget = end.UnixMilli()
	return s
}

// current returns the season at now. It keeps the last one, since the search takes 10 to 20 us.
func (b *Board) current(now time.Time) season {
	if s := b.recent.Load(); s != nil && s.start <= now.UnixMilli() && now.UnixMilli() < s.end {
		return *s
	}
	s := b.seasonAt(now)
	b.recent.Store(&s)
	return s
}

// find returns the season that a caller names: "" for the one at now, previousSeason, or an id.
func (b *Board) find(id string, now time.Time) (season, error) {
	current := b.current(now)
	switch {
	case id == "" || id == current.id:
		return current, nil
	case b.schedule == nil:
		return season{}, wire.Errorf(wire.BadRequest, "season: the board has no seasons")
	case id == previousSeason:
		return b.seasonAt(time.UnixMilli(current.start - 1)), nil
	}
	start, err := time.Parse(seasonLayout, id)
	if err != nil {
		return season{}, wire.Errorf(wire.BadRequest, "season: %.40q is not the id of a season, such as %s", id, current.id)
	}
	s := b.seasonAt(start)
	if s.id != id {
		return season{}, wire.Errorf(wire.NotFound, "season: the board has no season %s", id)
	}
	return s, nil
}
