package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchboard/internal/replay"
	"switchboard/internal/state"
)

// version is a value of a field, from the change that set it to the change that ended it.
type version struct {
	id    int64
	value string
	by    string // the client that set it, "" for the backend
	end   int64  // id of the change that replaced or removed the value, 0 for none
	until int64  // end of the field as of the last change, Unix ms; 0 for none
}

// liveAt reports whether the version was the field's value at some time from a to b.
func (v version) liveAt(a, b time.Time) bool {
	return !replay.Time(v.id).After(b) && (v.end == 0 || !replay.Time(v.end).Before(a)) && (v.until == 0 || v.until >= a.UnixMilli())
}

// liveThroughout reports whether the version was the field's value at all times from a to b.
func (v version) liveThroughout(a, b time.Time) bool {
	return replay.Time(v.id).Before(a) && (v.end == 0 || replay.Time(v.end).After(b)) && (v.until == 0 || v.until > b.UnixMilli())
}

// stateLog is the log of one channel, and what follows from it.
type stateLog struct {
	channel  string
	ids      map[int64]bool
	versions map[string][]version // by field
}

// apply adds an entry, and the versions that it begins and ends. before and after are the fields
// around it.
func (l *stateLog) apply(logged replay.Entry, before, after map[string]state.Shown) {
	l.ids[logged.ID] = true
	for field, old := range before {
		if now, found := after[field]; !found || now.ID != old.ID {
			l.last(field).end = logged.ID
		}
	}
	for field, now := range after {
		if before[field].ID != now.ID {
			l.versions[field] = append(l.versions[field], version{id: now.ID, value: string(now.Value), by: logged.Changes.By})
		}
		l.last(field).until = now.Until
	}
}

func (l *stateLog) last(field string) *version {
	list := l.versions[field]
	return &list[len(list)-1]
}

// find returns the version of a field with this id.
func (l *stateLog) find(field string, id int64) (version, bool) {
	i := slices.IndexFunc(l.versions[field], func(v version) bool { return v.id == id })
	if i < 0 {
		return version{}, false
	}
	return l.versions[field][i], true
}

// isClaimed reports whether a client may not change the seat, because another user has set it.
func (l *stateLog) isClaimed(field string, id int64, client string) bool {
	v, found := l.find(field, id)
	return found && strings.HasPrefix(field, seatGroup) && client != backendName && holderOf(v.by) != holderOf(client)
}

// overLimits returns the limits that a change has exceeded, in words. seatsBefore is the number of
// seats before it: a limit that is set later than the seats removes none.
func overLimits(fields map[string]state.Shown, seatsBefore int) (faults []string) {
	for name, f := range fields {
		if strings.HasPrefix(name, countGroup) {
			if n, err := strconv.Atoi(string(f.Value)); err != nil || n < 0 || n > countLimit {
				faults = append(faults, fmt.Sprintf("%s = %s", name, f.Value))
			}
		}
	}
	limit := seatRuleLimit
	if n, err := strconv.Atoi(string(fields[seatLimitField].Value)); err == nil { // Redis may have lost the field
		limit = min(limit, n)
	}
	if seats := countSeats(fields); seats > limit && seats > seatsBefore {
		faults = append(faults, fmt.Sprintf("%d seats, at most %d are allowed", seats, limit))
	}
	return faults
}

func countSeats(fields map[string]state.Shown) (n int) {
	for name := range fields {
		if strings.HasPrefix(name, seatGroup) {
			n++
		}
	}
	return n
}
