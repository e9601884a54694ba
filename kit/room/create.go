package room

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"switchboard/internal/payload"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/queue"
)

// CreateRequest is the data of room.create, and the body of the HTTP call.
type CreateRequest struct {
	// ID is the id of the room. Zero means a new one, which begins with the mode and a colon.
	ID string `json:"id,omitempty"`
	// Key makes the call idempotent: a repeated call with the same key returns the same room, while it
	// exists. The keys of different users differ. It must not be used together with ID.
	Key  string `json:"key,omitempty"`
	Mode string `json:"mode" required:"true"`
	Name string `json:"name,omitempty"`
	// Visibility is public or private. Zero means public.
	Visibility Visibility `json:"visibility,omitempty"`
	Region     string     `json:"region,omitempty"`
	// Capacity is at most that of the mode. Zero means that of the mode.
	Capacity   int             `json:"capacity,omitempty"`
	AppVersion string          `json:"app_version,omitempty"`
	Data       json.RawMessage `json:"data,omitempty"`
	// Nickname is that of the creating client, which becomes the first member.
	Nickname string `json:"nickname,omitempty"`
	// Owner is the user that the backend names as the owner. It is not a member yet.
	Owner string `json:"owner,omitempty"`
}

// The bounds of texts and data of a document, in bytes.
const (
	maxText = 128
	maxData = 8 << 10
)

// Create makes a room. A client becomes the owner and the first member. An id that exists is a
// conflict, whose data is the room if the caller may see it.
func (r *Rooms) Create(ctx context.Context, a Actor, q CreateRequest) (View, error) {
	doc, err := r.newRoom(&q)
	if err != nil {
		return View{}, err
	}
	if err := r.checkCreator(a, q); err != nil {
		return View{}, err
	}
	id := q.ID
	switch {
	case q.Key != "":
		id = keyedID(doc.Mode, a.User, q.Key)
	case id == "":
		id = doc.Mode + ":" + strings.ToLower(rand.Text()[:13])
	}
	page, err := r.corePage(ctx, id, a.User, false)
	if err != nil {
		return View{}, err
	}
	if !slices.ContainsFunc(page.Fields, func(f queue.NamedField) bool { return f.Name == fieldRoom }) {
		used := page.KeepUntil != 0
		if made, err := r.make(ctx, a, id, doc, q, used); err != nil {
			return View{}, err
		} else if made {
			s, err := r.Read(ctx, id)
			if err != nil {
				return View{}, err
			}
			return s.view(a), nil
		}
	}
	return r.existing(ctx, a, id, q.Key != "")
}

// make stores a new room. used means that an earlier room with the id may have left fields. made is
// false if another call has made a room with the id.
func (r *Rooms) make(ctx context.Context, a Actor, id string, doc *Room, q CreateRequest, used bool) (made bool, err error) {
	undo, err := r.charge(ctx, a, id)
	if err != nil {
		return false, err
	}
	u, err := r.planCreate(ctx, a, id, doc, q, used)
	if err == nil {
		_, err = r.apply(ctx, a, id, u)
	}
	if _, isRefused := errors.AsType[*state.Refusal](err); !isRefused {
		return err == nil, err // after an error, the room may be stored
	}
	s, err := r.readCore(ctx, id, a.User, false)
	if err == nil && s.creator != a.User || kit.HasCode(err, wire.NotFound) {
		undo()
	}
	return false, err
}

// existing returns the room that a create has found. Without a key that is an error.
func (r *Rooms) existing(ctx context.Context, a Actor, id string, byKey bool) (View, error) {
	exists := wire.Errorf(wire.Conflict, "room %s: it exists", id)
	s, err := r.readAs(ctx, a, id, func(s *Snapshot) error {
		if !byKey && !s.mayRead(a.User, r.mode(s).MembersOnly) {
			return exists
		}
		return nil
	})
	switch {
	case err != nil:
		return View{}, err
	case !byKey:
		return View{}, exists.With(s.view(a))
	}
	return s.view(a), nil
}

// newRoom returns the document of a new room, or an error that names the wrong part.
func (r *Rooms) newRoom(q *CreateRequest) (*Room, error) {
	mode, found := r.opts.Modes[q.Mode]
	if !found {
		return nil, r.unknownMode(q.Mode)
	}
	doc := &Room{
		Name: q.Name, Mode: q.Mode, Visibility: q.Visibility, Status: Waiting, Region: q.Region, Capacity: q.Capacity,
		Created: r.host.Now().UnixMilli(), AppVersion: q.AppVersion, Data: q.Data,
	}
	if doc.Visibility == "" {
		doc.Visibility = Public
	}
	if doc.Capacity == 0 {
		doc.Capacity = mode.Capacity
	}
	switch {
	case doc.Visibility != Public && doc.Visibility != Private:
		return nil, wire.Errorf(wire.BadRequest, "visibility: it is neither public nor private")
	case doc.Capacity < 1 || doc.Capacity > mode.Capacity:
		return nil, wire.Errorf(wire.BadRequest, "capacity: it must be between 1 and %d", mode.Capacity)
	}
	return doc, doc.check()
}

// check checks the texts and the data of a document, and compacts the data.
func (d *Room) check() (err error) {
	for _, t := range []struct{ kind, text string }{{"name", d.Name}, {"region", d.Region}, {"app_version", d.AppVersion}} {
		if err := checkText(t.kind, t.text, maxText); err != nil {
			return err
		}
	}
	if strings.ContainsAny(d.Region, " {}*/:") {
		return wire.Errorf(wire.BadRequest, "region: spaces, braces, colons, * and / are not allowed")
	}
	if len(d.Data) > 0 {
		d.Data, err = payload.Compact(d.Data, maxData)
	}
	return err
}

// checkCreator checks the parts of a request that depend on the caller, and the id.
func (r *Rooms) checkCreator(a Actor, q CreateRequest) error {
	if err := checkText("nickname", q.Nickname, maxNickname); err != nil {
		return err
	}
	switch {
	case q.Owner != "" && !a.isBackend():
		return wire.Errorf(wire.Forbidden, "owner: only the backend may name another owner")
	case q.Owner != "":
		if err := checkUser(q.Owner); err != nil {
			return err
		}
	}
	if err := kit.CheckKey(q.ID, q.Key); err != nil || q.ID == "" {
		return err
	}
	return r.checkNewID(q.ID, q.Mode)
}

// checkNewID checks a given id. The mode's name and a colon at the beginning select the rules of
// the channel, so rooms of a mode with rules need it, and those of other modes must not have it.
func (r *Rooms) checkNewID(id, mode string) error {
	if err := checkID(id); err != nil {
		return err
	}
	if strings.Contains(id, "~") {
		return wire.Errorf(wire.BadRequest, "id: the character ~ is for ids that are made from keys")
	}
	prefix, _, found := strings.Cut(id, ":")
	if _, isMode := r.opts.Modes[prefix]; !found || !isMode {
		prefix = ""
	}
	if prefix != mode && (prefix != "" || r.opts.Modes[mode].hasRules()) {
		return wire.Errorf(wire.BadRequest, "id: the id of a room of the mode %s must begin with %s and a colon", mode, mode)
	}
	return nil
}

// keyedID returns the id of the room that a user makes with an idempotency key. No id that is given
// has a ~.
func keyedID(mode, user, key string) string { return mode + ":~" + kit.KeyedID(user, key) }

// planCreate returns the update that makes a room. Fields that an earlier room with the id has left
// are removed, if the id was used.
func (r *Rooms) planCreate(ctx context.Context, a Actor, id string, doc *Room, q CreateRequest, used bool) (*state.Update, error) {
	u := a.update()
	u.If = []state.Condition{kit.Same(fieldRoom, 0)}
	u.Ops = []state.Op{kit.Set(fieldRoom, doc)}
	owner := q.Owner
	if !a.isBackend() {
		owner = a.User
		u.Counter = fieldNext
		s := &Snapshot{ID: id, Room: *doc}
		u.Ops = append(u.Ops, r.ops(s, place{user: a.User, nickname: q.Nickname, mark: "{n}"})...)
		u.If = append(u.If, isNew(a.User)...)
	}
	if owner != "" {
		u.Ops = append(u.Ops, kit.Set(fieldOwner, owner))
	}
	if a.isCharged() {
		u.Ops = append(u.Ops, kit.Set(fieldCreator, a.User))
	}
	if doc.Visibility == Private {
		u.Ops = append(u.Ops, kit.Set(fieldCode, newCode()))
	}
	if !used {
		return u, nil
	}
	left, err := kit.ReadState(ctx, r.host, queue.StateRead{Channel: Channel(id)})
	if err != nil {
		return nil, err
	}
	for _, f := range left.Fields {
		if !slices.ContainsFunc(u.Ops, func(op state.Op) bool { return op.Field == f.Name }) && f.Name != fieldNext && f.Name != fieldEnded && f.Parent == "" {
			u.Ops = append(u.Ops, kit.Delete(f.Name))
		}
	}
	return u, nil
}

// newCode returns a random code of 8 characters that people do not confuse.
func newCode() string {
	const letters = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ" // 32 of them
	var random [8]byte
	_, _ = rand.Read(random[:]) // it never fails
	for i, b := range random {
		random[i] = letters[b%32]
	}
	return string(random[:])
}

// unknownMode returns the error for a mode that is not configured.
func (r *Rooms) unknownMode(mode string) error {
	modes := strings.Join(slices.Sorted(maps.Keys(r.opts.Modes)), ", ")
	return wire.Errorf(wire.BadRequest, "mode: there is no mode %.40q; the modes are %.400s", mode, modes)
}
