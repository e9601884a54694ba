package room

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"switchboard/broker/namespace"
	"switchboard/internal/leader"
	"switchboard/internal/setting"
	"switchboard/kit/budget"
	"switchboard/kit/index"
)

// Options configures rooms.
type Options struct {
	// Modes are the kinds of rooms by name. A name has 1 to 32 characters of a-z 0-9 _ -. Zero means
	// one mode, DefaultMode.
	Modes map[string]Mode `setting:"modes"`
	// PerUser is how many rooms that a user has made may exist at once, at most 10,000. Those that the
	// backend makes do not count. Zero means 100.
	PerUser int `setting:"per_user" default:"100"`
	// Budget counts the rooms of each user. Zero means a count in this process.
	Budget budget.Store
	// Index keeps the lists of rooms. Zero means an index in this process.
	Index index.Index
	// Rounds makes one broker make the rounds of all. Nil means that each makes its own.
	Rounds *leader.Lease
	// Events receives the event room_ended of each room. Zero means no events.
	Events Events
}

// Mode is the rules of one kind of rooms.
type Mode struct {
	// Capacity is the most players, and reservations, of a room; at most MaxCapacity. A room may have
	// less. Zero means DefaultCapacity.
	Capacity int `setting:"capacity"`
	// Grace is how long a player keeps the place after the connection ends. Zero means 15 s.
	Grace time.Duration `setting:"grace"`
	// Reserve is how long a reservation waits for its player. Zero means 1 minute.
	Reserve time.Duration `setting:"reserve" default:"1m"`
	// EmptyLife is how long a room without members stays, at most 24 h. Zero means 1 minute.
	EmptyLife time.Duration `setting:"empty_life" default:"1m"`
	// FinishedLife is how long a finished room stays. Zero means 24 h.
	FinishedLife time.Duration `setting:"finished_life" default:"24h"`
	// FinishedEmptyLife is how long a finished room without members stays, within FinishedLife. Zero
	// means EmptyLife.
	FinishedEmptyLife time.Duration `setting:"finished_empty_life"`
	// HistoryAge is how long the messages of a room are kept after the last one, at most 7 days. Zero
	// means the broker's time. Ids of such rooms begin with the mode's name and a colon.
	HistoryAge time.Duration `setting:"history_age"`
	// MembersOnly keeps users that are not members from reading public rooms of the mode.
	MembersOnly bool `setting:"members_only"`
	// Fields are the rules of g/*, for members. Ids of such rooms begin with the mode's name and a
	// colon. Zero means that members may write all fields g/*.
	Fields []namespace.FieldRule `setting:"fields"`
}

// DefaultMode is the mode of rooms if no mode is configured.
const DefaultMode = "default"

// The bounds of a mode.
const (
	DefaultCapacity = 16
	maxPerUser      = 10_000
	MaxCapacity     = 500 // each member has at least three of the 1,024 fields of a channel
	MaxEmptyLife    = 24 * time.Hour
	MaxFinishedLife = 30 * 24 * time.Hour
	MaxHistoryAge   = 7 * 24 * time.Hour
	MaxReserve      = 24 * time.Hour
)

var modeName = regexp.MustCompile(`^[a-z0-9_-]{1,32}$`)

// withDefaults returns the options with all values set, or an error that names the wrong one.
func (o Options) withDefaults() (Options, error) {
	setting.Fill(&o)
	o.Modes = maps.Clone(o.Modes)
	if len(o.Modes) == 0 {
		o.Modes = map[string]Mode{DefaultMode: {}}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Modes)) {
		m := o.Modes[name].withDefaults()
		if !modeName.MatchString(name) {
			return o, fmt.Errorf("rooms: modes: %q is not the name of a mode", name)
		}
		if err := m.check(); err != nil {
			return o, fmt.Errorf("rooms: modes: %s: %w", name, err)
		}
		o.Modes[name] = m
	}
	if o.Index == nil {
		o.Index = index.NewMemory()
	}
	if o.Budget == nil {
		o.Budget = budget.NewMemory()
	}
	if o.PerUser < 1 || o.PerUser > maxPerUser {
		return o, fmt.Errorf("rooms: per_user: %d is not within 1 and %d", o.PerUser, maxPerUser)
	}
	return o, nil
}

func (m Mode) withDefaults() Mode {
	setting.Fill(&m)
	m.Capacity = cmp.Or(m.Capacity, DefaultCapacity)
	m.Grace = cmp.Or(m.Grace, namespace.DefaultGrace)
	m.FinishedEmptyLife = cmp.Or(m.FinishedEmptyLife, m.EmptyLife)
	return m
}

func (m Mode) check() error {
	for _, d := range []struct {
		name             string
		value, low, high time.Duration
	}{
		{"grace", m.Grace, time.Millisecond, namespace.MaxLease},
		{"reserve", m.Reserve, time.Millisecond, MaxReserve},
		{"empty_life", m.EmptyLife, time.Millisecond, MaxEmptyLife},
		{"finished_life", m.FinishedLife, time.Millisecond, MaxFinishedLife},
		{"finished_empty_life", m.FinishedEmptyLife, time.Millisecond, MaxFinishedLife},
		{"history_age", m.HistoryAge, 0, MaxHistoryAge},
	} {
		if d.value < d.low || d.value > d.high {
			return fmt.Errorf("%s: %v is not within %v and %v", d.name, d.value, d.low, d.high)
		}
	}
	for _, f := range m.Fields {
		if !strings.HasPrefix(f.Pattern, groupShared) {
			return fmt.Errorf("fields: %s: the fields of a mode begin with %s", f.Pattern, groupShared)
		}
	}
	if m.Capacity < 1 || m.Capacity > MaxCapacity {
		return fmt.Errorf("capacity: %d is not within 1 and %d", m.Capacity, MaxCapacity)
	}
	return nil
}

// hasRules reports whether rooms of the mode need a channel kind of their own.
func (m Mode) hasRules() bool { return m.HistoryAge != 0 || len(m.Fields) > 0 }
