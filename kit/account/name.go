package account

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"golang.org/x/text/secure/precis"

	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/queue"
)

// The prefixes of the channels.
const (
	accountPrefix = "account:"
	namePrefix    = "account-name:"
)

// name is a normalized name, or the zero value for none.
type name struct {
	text   string
	digest string // SHA-256, hex
}

// parseName normalizes a name by the profile UsernameCaseMapped of PRECIS (RFC 8265 §3.3): width
// and case of letters do not distinguish two names. E-mail addresses are names.
func parseName(text string) (name, error) {
	if len(text) > 4*MaxName {
		return name{}, wire.Errorf(wire.BadRequest, "name: it is longer than %d bytes", MaxName)
	}
	normalized, err := precis.UsernameCaseMapped.String(text)
	switch {
	case err != nil || normalized == "":
		return name{}, wire.Errorf(wire.BadRequest, "name: it is empty, or has a character that names cannot have (RFC 8265)")
	case len(normalized) > MaxName:
		return name{}, wire.Errorf(wire.BadRequest, "name: it is longer than %d bytes", MaxName)
	}
	return named(normalized), nil
}

// named returns the name that a record has. It is normalized already.
func named(text string) name {
	if text == "" {
		return name{}
	}
	sum := sha256.Sum256([]byte(text))
	return name{text, hex.EncodeToString(sum[:])}
}

// newID returns the id of a new account: 130 random bits. A counter could give an id twice after a
// failover of the store.
func newID() string { return strings.ToLower(rand.Text()) }

// checkID returns an error if id cannot be the id of an account.
func checkID(id string) error {
	if err := wire.CheckName("account", id); err != nil {
		return err
	}
	if len(id) > len(newID()) {
		return notFound(id)
	}
	return nil
}

func notFound(id string) error { return wire.Errorf(wire.NotFound, "there is no account %.40s", id) }

const (
	// claimLease is how long an account may take to write its new name, on the store's clock.
	claimLease = 30 * time.Second
	// claimKeep is how long the channel of an account remains that was never registered.
	claimKeep = time.Hour
)

// holder is what $$id of a name says.
type holder struct {
	field         int64 // its id, 0 if the name is free
	*snapshot           // of the account in it; nil if the name is free
	owns, pending bool  // the account has the name, or may still get it
}

// holder reads the holder of a name. The order matters: the account is read after the name, and an
// account claims a name before it writes $$id. So if it neither has nor claims the name now, it
// gets it only after another change of $$id.
func (a *Accounts) holder(ctx context.Context, digest string) (h holder, err error) {
	page, err := kit.ReadState(ctx, a.store, queue.StateRead{Channel: namePrefix + digest, Fields: []string{idField}})
	if err != nil || len(page.Fields) == 0 {
		return h, err
	}
	var id kit.Record[string]
	if err := id.Read(page.Fields[0].Field); err != nil {
		return h, fmt.Errorf("name %s: %w", digest, err)
	}
	h.field = id.ID
	if h.snapshot, err = a.read(ctx, id.Value); err != nil {
		return h, err
	}
	h.owns = h.Exists() && named(h.record.Value.Name).digest == digest
	h.pending = h.claim.ID != 0 && h.claim.Value == digest
	return h, nil
}

// owner returns the account that has a name. If there is none, it returns the snapshot of an
// account that does not exist, at the cost of an owner.
func (a *Accounts) owner(ctx context.Context, n name) (*snapshot, error) {
	h, err := a.holder(ctx, n.digest)
	if err != nil || h.owns {
		return h.snapshot, err
	}
	if h.snapshot == nil {
		if _, err := a.read(ctx, newID()); err != nil {
			return nil, err
		}
	}
	return &snapshot{}, nil
}

// claimName makes an account the holder of a name. It returns the id of the claim: the record may
// get the name only on the condition that $$claim still has this id.
func (a *Accounts) claimName(ctx context.Context, s *snapshot, n name) (claim int64, err error) {
	h, err := a.holder(ctx, n.digest)
	if err != nil {
		return 0, err
	}
	if h.field != 0 && h.id != s.id && (h.owns || h.pending) {
		return 0, taken()
	}
	if err := a.index.Schedule(ctx, sweepDelay, nameTask+n.digest); err != nil {
		return 0, fmt.Errorf("claim a name: %w", err)
	}
	claim, err = a.changeClaim(ctx, s, 0, setOp(claimField, n.digest, claimLease))
	if kit.HasCode(err, wire.Conflict) {
		return 0, wire.Errorf(wire.Conflict, "the account is being renamed; try again later")
	}
	if err != nil {
		return 0, fmt.Errorf("claim a name: %w", err)
	}
	if err = a.changeHolder(ctx, n.digest, h.field, setOp(idField, s.id, 0)); kit.HasCode(err, wire.Conflict) {
		// The next rename of the account need not wait until the claim ends.
		_, err = a.changeClaim(ctx, s, claim, kit.Delete(claimField))
		return 0, cmp.Or(err, taken())
	}
	return claim, err
}

// changeClaim changes the claim of an account if $$claim still has the id field; 0 means that it is
// absent.
func (a *Accounts) changeClaim(ctx context.Context, s *snapshot, field int64, op state.Op) (int64, error) {
	u := &state.Update{Ops: []state.Op{op}, If: []state.Condition{kit.Same(claimField, field)}}
	if u.Keep = claimKeep; s.Exists() {
		u.Keep = a.life(&s.record.Value)
	}
	done, err := a.store.Change(ctx, accountPrefix+s.id, u, false)
	return done.ID, err
}

func taken() error { return wire.Errorf(wire.Conflict, "the name is taken") }

// sweepName removes the holder of a name if it neither has nor claims the name. It reports whether
// to look again later.
func (a *Accounts) sweepName(ctx context.Context, digest string) (again bool, err error) {
	h, err := a.holder(ctx, digest)
	if err != nil || h.field == 0 || h.owns || h.pending {
		return h.pending && !h.owns, err
	}
	err = a.changeHolder(ctx, digest, h.field, kit.Delete(idField))
	if kit.HasCode(err, wire.Conflict) {
		return true, nil
	}
	return false, err
}

// changeHolder changes $$id of a name if it still has the id field; 0 means that it is absent.
func (a *Accounts) changeHolder(ctx context.Context, digest string, field int64, op state.Op) error {
	u := &state.Update{Ops: []state.Op{op}, If: []state.Condition{kit.Same(idField, field)}}
	_, err := a.store.Change(ctx, namePrefix+digest, u, a.opts.Durable)
	return err
}
