package board

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/robfig/cron/v3"

	"switchboard/broker/namespace"
	"switchboard/internal/leader"
	"switchboard/internal/setting"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit/budget"
	"switchboard/kit/index"
)

// Options configures the boards of a broker. All brokers that share a store need the same ones.
type Options struct {
	// Store holds the scores: a [Redis] next to a queue in Redis, or a [Memory] next to a queue in
	// memory. It is required.
	Store Store
	// Boards are the boards by name. A name that ends with * is the prefix of any number of boards;
	// of several that match, the longest decides. Zero means that each name is a board with the
	// defaults of Board.
	Boards map[string]Board `setting:"boards" value:"NAME or PREFIX*"`
	// OperationTTL is how long an operation id is known. Zero means 24 h.
	OperationTTL time.Duration `setting:"operation_ttl" default:"24h"`
	// PerUser is how many boards that a user has begun may exist at once: boards of a pattern whose
	// first score the user has submitted, at most 10,000. Zero means 32.
	PerUser int `setting:"per_user" default:"32"`
	// Budget counts these boards. Zero means a count in this process.
	Budget budget.Store
	// Index keeps the list of boards. Zero means an index in this process.
	Index index.Index
	// Rounds makes one broker make the rounds of all. Nil means that each makes its own.
	Rounds *leader.Lease

	now func() time.Time // in tests
}

// Board is the rules of a board.
type Board struct {
	// Order is "desc" for the highest score first, or "asc" for the lowest. Zero means desc.
	Order string `setting:"order" value:"desc or asc" default:"desc"`
	// Mode is what a submitted score does if the call does not say it. Clients cannot choose another
	// one. Zero means Best.
	Mode Mode `setting:"mode" value:"best or set or add" default:"best"`
	// Entries is the most players. One more than that pushes the last one out, or is not stored if it
	// would be the last one. Zero means 100,000.
	Entries int `setting:"entries" default:"100000"`
	// Season is a cron expression with five fields, such as "0 0 * * 1" or "@monthly", in UTC unless
	// it begins with CRON_TZ=. The board begins anew at its times. Zero means that it never does.
	Season string `setting:"season" value:"CRON"`
	// Keep is how many past seasons can be read. Zero means 4.
	Keep int `setting:"keep" default:"4"`
	// Read is "anyone", "users" or "nobody": the clients that may read the board and subscribe to its
	// channel. Zero means users. The backend always may.
	Read string `setting:"read" value:"WHO" default:"users"`
	// Submit allows users to submit scores of their own. A client can claim any score, so use it only
	// if nothing depends on the board. Zero means that only the backend submits.
	Submit bool `setting:"submit"`

	// Life is how long a board without seasons stays after the last score. Zero means 30 days for
	// boards of a pattern to which users may submit, and forever for others.
	Life time.Duration `setting:"life"`

	pattern  bool          // the name ends with *
	schedule cron.Schedule // of Season; tests set a faster one
	recent   *atomic.Pointer[season]
	read     namespace.Access
}

// Mode is what a submitted score does to the player's score.
type Mode string

// The modes.
const (
	Best Mode = "best" // replaces it if the new one is before it in the board's order
	Set  Mode = "set"  // replaces it
	Add  Mode = "add"  // is added to it; absent is 0. It needs an operation id
)

const (
	minEntries   = topSize
	maxEntries   = 10_000_000
	maxKeep      = 100
	maxOperation = 7 * 24 * time.Hour
	maxPerUser   = 10_000
	defaultLife  = 30 * 24 * time.Hour
	maxLife      = 10 * 365 * 24 * time.Hour
)

var cronParser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// withDefaults returns valid options, or an error that names the first invalid one.
func (o Options) withDefaults() (Options, error) {
	if o.Store == nil {
		return o, errors.New("board: Store is required")
	}
	setting.Fill(&o)
	if o.OperationTTL < time.Second || o.OperationTTL > maxOperation {
		return o, fmt.Errorf("board: OperationTTL: %v is not within 1s and %v", o.OperationTTL, maxOperation)
	}
	if o.now == nil {
		o.now = time.Now
	}
	if o.Index == nil {
		o.Index = index.NewMemory()
	}
	if o.Budget == nil {
		o.Budget = budget.NewMemory()
	}
	if o.PerUser < 1 || o.PerUser > maxPerUser {
		return o, fmt.Errorf("board: per_user: %d is not within 1 and %d", o.PerUser, maxPerUser)
	}
	if len(o.Boards) == 0 {
		o.Boards = map[string]Board{"*": {}}
	}
	boards := make(map[string]Board, len(o.Boards))
	for name, b := range o.Boards {
		if prefix := strings.TrimSuffix(name, "*"); prefix != "" {
			if err := wire.CheckName("channel", channelPrefix+prefix); err != nil || strings.Contains(prefix, "*") {
				return o, fmt.Errorf("board: %q is not the name of a board", name)
			}
		}
		b.pattern = strings.HasSuffix(name, "*")
		b, err := b.withDefaults()
		if err != nil {
			return o, fmt.Errorf("board %s: %w", name, err)
		}
		boards[name] = b
	}
	o.Boards = boards
	return o, nil
}

func (b Board) withDefaults() (Board, error) {
	setting.Fill(&b)
	if b.pattern && b.Submit && b.Season == "" {
		b.Life = cmp.Or(b.Life, defaultLife)
	}
	switch {
	case b.Life != 0 && b.Season != "":
		return b, errors.New("life: a board with seasons has keep")
	case b.Life != 0 && (b.Life < time.Second || b.Life > maxLife):
		return b, fmt.Errorf("life: %v is not within 1s and %v", b.Life, maxLife)
	case b.Order != "asc" && b.Order != "desc":
		return b, fmt.Errorf("order: %q is neither asc nor desc", b.Order)
	case b.Mode.check() != nil:
		return b, b.Mode.check()
	case b.Entries < minEntries || b.Entries > maxEntries:
		return b, fmt.Errorf("entries: %d is not within %d and %d", b.Entries, minEntries, maxEntries)
	case b.Keep < 1 || b.Keep > maxKeep:
		return b, fmt.Errorf("keep: %d is not within 1 and %d", b.Keep, maxKeep)
	case b.Read != "anyone" && b.Read != "users" && b.Read != "nobody":
		return b, fmt.Errorf("read: %q is none of anyone, users and nobody", b.Read)
	}
	b.recent = new(atomic.Pointer[season])
	var err error
	if b.read, err = namespace.ParseAccess(b.Read); err != nil || b.Season == "" {
		return b, err
	}
	if b.schedule, err = parseSeason(b.Season); err != nil {
		return b, fmt.Errorf("season: %w", err)
	}
	return b, nil
}

func (m Mode) check() error {
	switch m {
	case Best, Set, Add:
		return nil
	}
	return wire.Errorf(wire.BadRequest, "mode: %.20q is none of best, set and add", m)
}

// sign is 1 if the lowest score is first, and -1 if the highest is.
func (b *Board) sign() int64 {
	if b.Order == "asc" {
		return 1
	}
	return -1
}

// board returns the rules of a board.
func (o *Options) board(name string) (*Board, error) {
	if err := wire.CheckName("board", name); err != nil {
		return nil, err
	}
	if err := wire.CheckName("channel", channelPrefix+name); err != nil {
		return nil, err
	}
	best, found := "", false
	for pattern := range o.Boards {
		prefix, isPrefix := strings.CutSuffix(pattern, "*")
		if pattern == name {
			best, found = pattern, true
			break
		}
		if isPrefix && strings.HasPrefix(name, prefix) && (!found || len(pattern) > len(best)) {
			best, found = pattern, true
		}
	}
	if !found {
		return nil, wire.Errorf(wire.NotFound, "board: there is no %s", name)
	}
	b := o.Boards[best]
	return &b, nil
}

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
