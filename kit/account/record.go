package account

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"switchboard/internal/redispipe"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/kit/index"
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

// snapshot is the fields of an account at one id.
type snapshot struct {
	id     string
	record kit.Record[record]
	scram  kit.Record[credentials]
	claim  kit.Record[string]
	grants []kit.Record[grant] // by slot
}

// Exists reports whether there is an account with the id.
func (s *snapshot) Exists() bool { return s.record.Exists() }

// account returns what callers see.
func (s *snapshot) account() Account { return s.record.Value.account(s.id, s.record.ID) }

// checkVersion returns a conflict unless the account meets the condition.
func (s *snapshot) checkVersion(m kit.Match) error {
	if have := s.record.Value.version(s.record.ID); !m.Met(have) {
		return wire.Errorf(wire.Conflict, "the account has version %d", have).With(s.account())
	}
	return nil
}

// documentsIn returns the accounts of a store. All fields of an account come from one read, so they
// belong together.
func documentsIn(store kit.Store, lists index.Index) kit.Documents[*snapshot] {
	return kit.Documents[*snapshot]{
		Kind: "account", Prefix: accountPrefix, Record: recordField, States: store, Index: lists,
		Whole: queue.StateRead{Fields: fieldNames}, Parse: parseAccount, CheckID: checkID, Delay: projectDelay,
	}
}

func parseAccount(id string, page *queue.StatePage) (s *snapshot, err error) {
	s = &snapshot{id: id, grants: make([]kit.Record[grant], MaxLogins)}
	for _, f := range page.Fields {
		switch f.Name {
		case recordField:
			err = s.record.Read(f.Field)
		case scramField:
			err = s.scram.Read(f.Field)
		case claimField:
			err = s.claim.Read(f.Field)
		default:
			slot, _ := strconv.Atoi(f.Name[len(tokenPrefix):])
			err = s.grants[slot].Read(f.Field)
		}
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", f.Name, err)
		}
	}
	return s, kit.CheckFormat(s.record.Value.Version, formatVersion)
}

// read reads an account, which may not exist.
func (a *Accounts) read(ctx context.Context, id string) (*snapshot, error) {
	return a.documents.Find(ctx, id)
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

// Store keeps the states of the channels of accounts. [RedisStore] returns one.
type Store = kit.Store

// RedisStore returns a store in a Redis of its own. prefix is the prefix of all keys.
func RedisStore(pipe *redispipe.Pipe, prefix string) Store {
	return redisStore{queue.NewRedis(pipe, queue.Options{Prefix: prefix})}
}

type redisStore struct{ *queue.Redis }

// Change implements Store.
func (s redisStore) Change(ctx context.Context, channel string, u *state.Update, durable bool) (kit.Changed, error) {
	u.Writer = cmp.Or(u.Writer, state.BackendHolder)
	// Cap: the log of a channel would otherwise keep records that were replaced, such as that of a
	// former password.
	done, err := s.AppendChannel(ctx, queue.ChannelPush{Channel: channel, Update: u, Durable: durable, Cap: maxLogged})
	return kit.Changed{ID: done.ID, Clock: done.Clock}, err
}
