package room

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/kit/budget"
	"switchboard/kit/index"
)

// QuickRequest is the data of room.quick.
type QuickRequest struct {
	Mode string `json:"mode" required:"true"`
	// Region is the region of the room. Zero means any, and none for a new room.
	Region   string `json:"region,omitempty"`
	Nickname string `json:"nickname,omitempty"`
	// Name, AppVersion and Data are those of a new room.
	Name       string          `json:"name,omitempty"`
	AppVersion string          `json:"app_version,omitempty"`
	Data       json.RawMessage `json:"data,omitempty"`
}

const (
	// quickTries is how many rooms may refuse a quick join before it makes one of its own.
	quickTries = 8
	// quickLease is how long a place is kept for a quick join. If its server dies in between, another
	// player gets the place then.
	quickLease = 5 * time.Second
)

// Quick makes the user of a connection a member of an open public room of a mode that has not
// started, or of a new one. Users that come at once, on any number of brokers, are sent to
// different places of the same rooms, the oldest first: see [index.Search]. A new room is filled
// while it is being made. The errors are those of Create.
func (r *Rooms) Quick(ctx context.Context, a Actor, q QuickRequest) (Joined, error) {
	if a.isBackend() {
		return Joined{}, wire.Errorf(wire.BadRequest, "the backend joins for a client")
	}
	a.placed = true
	return r.quick(ctx, q, entrance{
		user: a.User,
		join: func(id string) (Joined, error) { return r.Join(ctx, a, JoinRequest{Room: id, Nickname: q.Nickname}) },
		create: func(n CreateRequest) (Joined, error) {
			n.Nickname = q.Nickname
			view, err := r.Create(ctx, a, n)
			return Joined{Room: view.ID, Channel: view.Channel, N: view.N}, err
		},
	})
}

// entrance is how the user of a quick join enters a room that exists, and one that it makes.
type entrance struct {
	user   string
	join   func(id string) (Joined, error)
	create func(CreateRequest) (Joined, error)
}

// quick enters an open room, or a new one.
func (r *Rooms) quick(ctx context.Context, q QuickRequest, e entrance) (Joined, error) {
	mode, found := r.opts.Modes[q.Mode]
	if !found {
		return Joined{}, r.unknownMode(q.Mode)
	}
	doc := Room{Mode: q.Mode, Name: q.Name, Region: q.Region, AppVersion: q.AppVersion, Data: q.Data}
	if err := cmp.Or(doc.check(), checkText("nickname", q.Nickname, maxNickname)); err != nil {
		return Joined{}, err
	}
	create := CreateRequest{Mode: q.Mode, Region: q.Region, Name: q.Name, AppVersion: q.AppVersion, Data: q.Data}
	s := index.Search{
		List: waitLists + "/" + lobbyName(q.Mode, q.Region), Taker: userList(e.user),
		Places: mode.Capacity, Lists: waitingLists(&doc), Due: dueAfter, Lease: quickLease,
	}
	for range quickTries {
		if err := r.settleOthers(ctx); err != nil {
			return Joined{}, err
		}
		s.New = q.Mode + ":" + strings.ToLower(rand.Text()[:13])
		at := time.Now()
		f, err := r.index.Find(ctx, s)
		if err != nil {
			return Joined{}, err
		}
		r.pending.noted(f.ID, at)
		j, err := r.enter(ctx, f, create, e)
		if !isClosed(err) {
			return j, err
		}
		r.pending.add(f.ID, false) // its card is late, or wrong
		s.Not = append(s.Not, f.ID)
	}
	return e.create(create)
}

// enter enters the room that a search has found. Of the users of this process that come while the
// room is being made, one makes it, and the others wait for that.
func (r *Rooms) enter(ctx context.Context, f index.Found, create CreateRequest, e entrance) (Joined, error) {
	if f.Made == "" {
		return e.join(f.ID)
	}
	end, err := r.makers.begin(ctx, f.ID)
	if err != nil {
		return Joined{}, err
	}
	if end != nil {
		defer end()
	}
	if end == nil || !f.First { // another user has made it, or has failed to
		if j, err := e.join(f.ID); !kit.HasCode(err, wire.NotFound) {
			return j, err
		}
	}
	create.ID, create.Region = f.ID, regionOf(f.Made, create.Mode)
	j, err := e.create(create)
	if kit.HasCode(err, wire.Conflict) { // another process was faster
		return e.join(f.ID)
	}
	return j, err
}

// regionOf returns the region of the rooms in a list of waiting rooms of a mode.
func regionOf(list, mode string) string {
	return strings.TrimPrefix(strings.TrimPrefix(list, waitLists+"/"+mode), ":")
}

// isClosed reports whether a join failed because of its room, so that another one must be tried.
// Forbidden means that the user was kicked.
func isClosed(err error) bool {
	return !errors.Is(err, budget.ErrSpent) && kit.HasCode(err, wire.Full, wire.Locked, wire.NotFound, wire.BadCode, wire.Forbidden)
}

// QuickForRequest is the body of a quick join by the backend.
type QuickForRequest struct {
	QuickRequest
	User string `json:"user" required:"true"`
	// Client is a connected client of the user, without the user's name. Zero means that the place is
	// reserved until a client joins.
	Client string `json:"client,omitempty"`
	// TTLMS is how long a reservation waits, ms. Zero means Mode.Reserve.
	TTLMS int64 `json:"ttl_ms,omitempty"`
	// TTL is the former name of TTLMS, in seconds.
	TTL int64 `json:"ttl,omitempty"`
}

// QuickFor is Quick for the client of a user, in the name of the backend. Without a client it
// reserves the place, and the user is the owner of a new room. A client that is not connected is
// not_found.
func (r *Rooms) QuickFor(ctx context.Context, q QuickForRequest) (j Joined, err error) {
	if err := checkUser(q.User); err != nil {
		return Joined{}, err
	}
	if q.Client != "" {
		err = r.callClient(ctx, q.User, q.Client, quickClient, q.QuickRequest, &j)
		return j, err
	}
	a := Actor{placed: true}
	join := func(id string) (Joined, error) {
		return r.reserveOne(ctx, a, id, JoinForRequest{User: q.User, TTLMS: q.TTLMS, TTL: q.TTL})
	}
	return r.quick(ctx, q.QuickRequest, entrance{
		user: q.User,
		join: join,
		create: func(n CreateRequest) (Joined, error) {
			n.Owner = q.User
			view, err := r.Create(ctx, a, n)
			if err != nil {
				return Joined{}, err
			}
			return join(view.ID)
		},
	})
}

// makers is the rooms that quick joins of this process are making: by id a channel that is closed
// when the room was made, or could not be made.
type makers struct{ sync.Map }

// begin returns the function that ends the making of a room, or nil after another caller has ended
// it.
func (m *makers) begin(ctx context.Context, id string) (end func(), err error) {
	done := make(chan struct{})
	other, found := m.LoadOrStore(id, done)
	if !found {
		return func() { m.Delete(id); close(done) }, nil
	}
	select {
	case <-other.(chan struct{}):
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
