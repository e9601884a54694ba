package hold

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"switchboard/internal/state"
	"switchboard/internal/wire"
)

const (
	channelPrefix = "hold:"
	resourceField = "$resource"
	seatGroup     = "seat/"
	recordGroup   = "$$hold/"
	livePrefix    = "$$live:"
	ofPrefix      = "$$of:"
)

// State is what a hold is or was.
type State string

// The states. The last two are ends.
const (
	Held     State = "held"
	Sold     State = "sold"
	Released State = "released" // the hold or the sale was released
	Expired  State = "expired"  // the hold was not confirmed in time
)

// Hold is a hold or a sale, live or ended.
type Hold struct {
	ID       string   `json:"id"`
	Resource string   `json:"resource"`
	User     string   `json:"user,omitempty"`
	Seats    []string `json:"seats"` // the seats, or the names of the units
	State    State    `json:"state"`
	Created  int64    `json:"created"`         // Unix ms
	Until    int64    `json:"until,omitempty"` // end of a hold, Unix ms; only if Held
	Last     int64    `json:"last,omitempty"`  // the latest end that renewals can reach; only if Held
	Sold     int64    `json:"sold,omitempty"`  // time of the sale
	Ended    int64    `json:"ended,omitempty"` // time of the release or the expiry
}

// record is the value of a field $$hold/<id>.
type record struct {
	User    string   `json:"user,omitempty"`
	Seats   []string `json:"seats"`
	Units   bool     `json:"units,omitempty"` // the places have no names
	State   State    `json:"state"`           // never Expired
	Created int64    `json:"created"`
	Last    int64    `json:"last,omitempty"`
	Sold    int64    `json:"sold,omitempty"`
	Ended   int64    `json:"ended,omitempty"`
	After   int64    `json:"after"` // of Held: how long the record lives after the hold, ms
}

func (r *record) encode() []byte {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // impossible: it has only strings and numbers
	}
	return text
}

// until returns the end of a hold, Unix ms. The lease of its record is longer.
func (r *record) until(f *state.Field) int64 { return f.Until() - r.After }

// show returns the hold that a record describes. now is the store's clock, Unix ms.
func (r *record) show(id, resource string, f *state.Field, now int64) *Hold {
	h := &Hold{
		ID: id, Resource: resource, User: r.User, Seats: r.Seats, State: r.State, Created: r.Created, Sold: r.Sold, Ended: r.Ended,
	}
	if r.State == Held {
		if until := r.until(f); until > now {
			h.Until, h.Last = until, r.Last
		} else {
			h.State, h.Ended = Expired, until
		}
	}
	return h
}

// parseRecord parses a field $$hold/<id>.
func parseRecord(f *state.Field) (*record, error) {
	r := new(record)
	if err := json.Unmarshal(f.Value, r); err != nil {
		return nil, fmt.Errorf("record of a hold: %w", err)
	}
	return r, nil
}

// userPart returns a user as part of a field's name. A long name is replaced by its hash, which no
// escaped name can be: "%h" is no escaped byte.
func userPart(user string) string {
	escaped := state.Escape(user)
	if len(escaped) <= 64 {
		return escaped
	}
	sum := sha256.Sum256([]byte(user))
	return "%h" + hex.EncodeToString(sum[:16])
}

func recordField(id string) string     { return recordGroup + id }
func liveGroup(user string) string     { return livePrefix + userPart(user) + "/" }
func liveField(user, id string) string { return liveGroup(user) + id }
func ofGroup(user string) string       { return ofPrefix + userPart(user) + "/" }
func ofField(user, id string) string   { return ofGroup(user) + id }
func seatField(name string) string     { return seatGroup + name }

// seatValue is the value of a seat.
func seatValue(s State) []byte { return []byte(`{"s":"` + string(s) + `"}`) }

// idOf returns the id at the end of the name of a field.
func idOf(field string) string { return field[strings.LastIndexByte(field, '/')+1:] }

// checkID returns an error if id is not the id of a hold.
func checkID(id string) error {
	if !isName(id, MaxID) {
		return wire.Errorf(wire.BadRequest, "id: it has 1 to %d characters of A-Z a-z 0-9 . _ : @ -", MaxID)
	}
	return nil
}

// checkUser returns an error if user is neither empty nor the name of a user.
func checkUser(user string) error {
	if user == "" {
		return nil
	}
	return wire.CheckName("user", user)
}
