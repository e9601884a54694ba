package account

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"switchboard/broker/extension"
	"switchboard/broker/namespace"
	"switchboard/internal/payload"
	"switchboard/internal/setting"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/queue"
)

const (
	sessionPrefix = "session:"
	sessionField  = "$$session"
	// sessionKeep is how long the channel of a document remains after it. Its ids go on until
	// then, so that a condition on an earlier document does not hold by chance.
	sessionKeep = time.Hour
)

// MaxDocument is the most bytes of a document of a session.
const MaxDocument = 16 << 10

// SessionOptions configures Sessions.
type SessionOptions struct {
	// TTL is how long a document lives after it was put, unless the call says otherwise. Zero
	// means one hour.
	TTL time.Duration `setting:"ttl" default:"1h"`
	// Durable makes each change wait until a replica has it.
	Durable bool `setting:"durable"`
	// Store keeps the documents. Zero means the broker's store.
	Store Store
}

// Sessions keeps a document for each user, which ends by itself.
type Sessions struct {
	ttl     time.Duration
	durable bool
	store   Store
}

// NewSessions returns the sessions of a broker.
func NewSessions(host *extension.Host, o SessionOptions) (*Sessions, error) {
	setting.Fill(&o)
	s := &Sessions{o.TTL, o.Durable, o.Store}
	if s.store == nil {
		s.store = kit.HostStore(host)
	}
	if s.ttl < time.Second || s.ttl > namespace.MaxLease {
		return nil, fmt.Errorf("sessions: ttl: %v is not within 1s and %v", s.ttl, namespace.MaxLease)
	}
	return s, nil
}

// Extension returns sessions as a part of the broker.
func (s *Sessions) Extension() extension.Extension {
	return extension.Extension{
		Name: "sessions", Calls: s.calls(), Channels: []extension.ChannelKind{closed(sessionPrefix, namespace.DefaultStateKeep)},
		Owned: []extension.Owned{{Kind: "sessions", Forget: s.forget}},
	}
}

// Document is the document of a user.
type Document struct {
	User    string          `json:"user"`
	Version int64           `json:"version"` // never used twice for a user
	Until   int64           `json:"until"`   // when it ends, Unix ms on the store's clock
	Data    json.RawMessage `json:"data"`
}

// conditions returns the conditions of an update of the document.
func conditions(m kit.Match) []state.Condition {
	switch {
	case m.Version != 0:
		return []state.Condition{{Field: sessionField, Kind: state.IsID, ID: m.Version}}
	case m.Exists:
		return []state.Condition{{Field: sessionField, Kind: state.Exists}}
	case m.Absent:
		return []state.Condition{{Field: sessionField, Kind: state.IsAbsent}}
	}
	return nil
}

// Get returns the document of a user, or a not_found error.
func (s *Sessions) Get(ctx context.Context, user string) (Document, error) {
	if err := checkUser(user); err != nil {
		return Document{}, err
	}
	d, ok, err := s.read(ctx, user)
	if err == nil && !ok {
		err = wire.Errorf(wire.NotFound, "user %s has no session", user)
	}
	return d, err
}

func (s *Sessions) read(ctx context.Context, user string) (d Document, ok bool, err error) {
	page, err := kit.ReadState(ctx, s.store, queue.StateRead{Channel: sessionPrefix + user, Fields: []string{sessionField}})
	if err != nil || len(page.Fields) == 0 {
		return d, false, err
	}
	f := page.Fields[0]
	return Document{user, f.ID, f.Lease, f.Value}, true, nil
}

// Put stores the document of a user for a time. Zero means SessionOptions.TTL. If the condition is
// not met, the error is a conflict with the current document, or null, as its data.
func (s *Sessions) Put(ctx context.Context, user string, data []byte, ttl time.Duration, m kit.Match) (Document, error) {
	if err := checkUser(user); err != nil {
		return Document{}, err
	}
	ttl = cmp.Or(ttl, s.ttl)
	if ttl < 0 || ttl > namespace.MaxLease {
		return Document{}, wire.Errorf(wire.BadRequest, "ttl: it is not within 1 s and %v", namespace.MaxLease)
	}
	value, err := payload.Compact(data, MaxDocument)
	if err != nil {
		return Document{}, err
	}
	op := state.Op{Field: sessionField, Kind: state.Set, Value: value, TTL: ttl}
	done, err := s.change(ctx, user, op, m, ttl+sessionKeep)
	return Document{User: user, Version: done.ID, Until: done.Clock + ttl.Milliseconds(), Data: value}, err
}

// Delete removes the document of a user. It does nothing if there is none.
func (s *Sessions) Delete(ctx context.Context, user string, m kit.Match) error {
	_, err := s.remove(ctx, user, m)
	return err
}

// remove is Delete. It reports whether there was a document.
func (s *Sessions) remove(ctx context.Context, user string, m kit.Match) (found bool, err error) {
	if err := checkUser(user); err != nil {
		return false, err
	}
	conditional := m != kit.Match{}
	if !conditional {
		m.Exists = true
	}
	_, err = s.change(ctx, user, kit.Delete(sessionField), m, sessionKeep)
	if kit.HasCode(err, wire.Conflict) && !conditional {
		return false, nil
	}
	return err == nil, err
}

// forget removes the documents of users.
func (s *Sessions) forget(ctx context.Context, users []string) (removed int, err error) {
	for _, user := range users {
		if checkUser(user) != nil {
			continue // there cannot be a document
		}
		found, err := s.remove(ctx, user, kit.Match{})
		if err != nil {
			return removed, err
		}
		if found {
			removed++
		}
	}
	return removed, nil
}

func (s *Sessions) change(ctx context.Context, user string, op state.Op, m kit.Match, keep time.Duration) (done kit.Changed, err error) {
	u := &state.Update{Ops: []state.Op{op}, If: conditions(m)}
	u.Keep = keep
	done, err = s.store.Change(ctx, sessionPrefix+user, u, s.durable)
	if !kit.HasCode(err, wire.Conflict) {
		return done, err
	}
	current, ok, err := s.read(ctx, user)
	if err != nil {
		return done, err
	}
	refused := wire.Errorf(wire.Conflict, "the session of user %s is another one", user)
	if !ok {
		return done, refused.With(nil)
	}
	return done, refused.With(current)
}

// checkUser returns an error if there is no channel for a user.
func checkUser(user string) error {
	if err := wire.CheckName("user", user); err != nil {
		return err
	}
	return wire.CheckName("session of user", sessionPrefix+user)
}
