package account

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/queue"
)

// The fields of an account.
const (
	recordField = "$$account"
	scramField  = "$$scram"
	claimField  = "$$claim"
	tokenPrefix = "$$token/"
	eventPrefix = "$$event/"
	proofPrefix = "$$proof/"
	idField     = "$$id" // of a name
)

// State is the state of an account.
type State string

// The states of accounts.
const (
	Open    State = "open"
	Locked  State = "locked"  // the backend has locked it: no login
	Deleted State = "deleted" // marked as deleted: no login; its name stays taken
)

// formatVersion is the version of the format of records.
const formatVersion = 1

// Account is what callers see of an account.
type Account struct {
	ID       string `json:"id"`
	Name     string `json:"name,omitempty"` // normalized; "" for a guest
	Nickname string `json:"nickname,omitempty"`
	State    State  `json:"state"`
	Created  int64  `json:"created"` // Unix ms
	Login    *Login `json:"login,omitempty"`
	// Version changes with Name, Nickname and State, and not with a login. It is never used twice.
	Version int64 `json:"version,omitempty"`
}

// Login is the last login of an account.
type Login struct {
	At      int64  `json:"at"` // Unix ms
	Address string `json:"address,omitempty"`
}

// record is the value of $$account.
type record struct {
	Version  int       `json:"v"`
	Name     string    `json:"name,omitempty"`
	Nickname string    `json:"nickname,omitempty"`
	State    State     `json:"state"`
	Created  int64     `json:"created"`
	Login    *Login    `json:"login,omitempty"`
	Events   int64     `json:"events"`         // how many events there were
	Last     EventType `json:"last,omitempty"` // the type of the last one
	// Edited is the version of the account, if it is not the id of this record: the id of the record
	// with which Name, Nickname or State changed. 0 means this one, also in records from before it.
	Edited int64 `json:"edited,omitempty"`
}

// card returns the account as cards have it. A version of 0 is that of the card.
func (r *record) card(id string) Account {
	return Account{ID: id, Name: r.Name, Nickname: r.Nickname, State: r.State, Created: r.Created, Login: r.Login, Version: r.Edited}
}

// account returns what callers see of an account whose record has an id.
func (r *record) account(id string, record int64) Account {
	a := r.card(id)
	a.Version = r.version(record)
	return a
}

// version returns the version of an account whose record has an id.
func (r *record) version(id int64) int64 { return cmp.Or(r.Edited, id) }

// edited reports whether next has another version than r.
func (r *record) edited(next *record) bool {
	return r.Name != next.Name || r.Nickname != next.Nickname || r.State != next.State
}

// grant is the value of $$token/{slot}: a login that can be renewed.
type grant struct {
	Family string `json:"family"`           // names the login; a later login in the slot has another one
	Digest []byte `json:"digest"`           // SHA-256 of the secret of the current renewal token
	Client string `json:"client,omitempty"` // the part of the client id that the tokens set
	Since  int64  `json:"since"`            // the login, Unix ms
}

// stored is a value and the id of its field, which is 0 if the field is absent.
type stored[T any] struct {
	value T
	id    int64
}

func (s *stored[T]) read(f *state.Field) error {
	s.id = f.ID
	return json.Unmarshal(f.Value, &s.value)
}

// snapshot is the fields of an account at one id.
type snapshot struct {
	id     string
	record stored[record]
	scram  stored[credentials]
	claim  stored[string]
	grants []stored[grant] // by slot
}

func (s *snapshot) exists() bool { return s.record.id != 0 }

// account returns what callers see.
func (s *snapshot) account() Account { return s.record.value.account(s.id, s.record.id) }

// checkVersion returns a conflict unless the account meets the condition.
func (s *snapshot) checkVersion(m kit.Match) error {
	if have := s.record.value.version(s.record.id); !m.Met(have) {
		return &wire.DetailedError{Err: wire.Errorf(wire.Conflict, "the account has version %d", have), Data: s.account()}
	}
	return nil
}

// read reads an account. All of its fields come from one read, so they belong together.
func (a *Accounts) read(ctx context.Context, id string) (*snapshot, error) {
	fields, err := a.readFields(ctx, accountPrefix+id, fieldNames...)
	if err != nil {
		return nil, fmt.Errorf("read account %s: %w", id, err)
	}
	s := &snapshot{id: id, grants: make([]stored[grant], MaxLogins)}
	for _, f := range fields {
		switch f.Name {
		case recordField:
			err = s.record.read(f.Field)
		case scramField:
			err = s.scram.read(f.Field)
		case claimField:
			err = s.claim.read(f.Field)
		default:
			slot, _ := strconv.Atoi(f.Name[len(tokenPrefix):])
			err = s.grants[slot].read(f.Field)
		}
		if err != nil {
			return nil, fmt.Errorf("account %s: field %s: %w", id, f.Name, err)
		}
	}
	if err := kit.CheckFormat(s.record.value.Version, formatVersion); err != nil {
		return nil, fmt.Errorf("account %s: %w", id, err)
	}
	return s, nil
}

// readFields is readOne in the store of accounts.
func (a *Accounts) readFields(ctx context.Context, channel string, names ...string) ([]queue.NamedField, error) {
	o := readOne(ctx, a.store, channel, names...)
	return o.Value.Fields, o.Err
}

// readOne reads the live ones of the named fields of a channel.
func readOne(ctx context.Context, s Store, channel string, names ...string) queue.Outcome[queue.StatePage] {
	return s.ReadStates(ctx, []queue.StateRead{{Channel: channel, Fields: names}})[0]
}

// fieldNames are the fields that read reads: with a lower Options.Logins than before, there may be
// logins in all slots.
var fieldNames = func() []string {
	names := []string{recordField, scramField, claimField}
	for slot := range MaxLogins {
		names = append(names, tokenField(slot))
	}
	return names
}()

func tokenField(slot int) string { return tokenPrefix + strconv.Itoa(slot) }
