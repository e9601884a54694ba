package rooms

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"switchboard/bench/system"
	"switchboard/internal/await"

	"golang.org/x/sync/errgroup"
)

// game is a running server that keeps rooms.
type game interface {
	// enter opens the connection of a member and asks for a place. The first member of a room creates
	// it and sets its id.
	enter(ctx context.Context, m *member) error
	// create makes rooms without members.
	create(ctx context.Context, rooms int) error
}

// room is a room of the generator.
type room struct {
	index, capacity int
	id              string
	members         []*member
	moving          atomic.Bool // the members change their positions
	closed          atomic.Bool // the connections end
}

// joiners is how many rooms are filled at the same time.
const joiners = 16

// joinTimeout limits the join of one member.
const joinTimeout = 20 * time.Second

// Players is all rooms and members of one server.
type Players struct {
	game    game
	rooms   []*room
	readers sync.WaitGroup

	mu  sync.Mutex // guards err
	err error      // the first error of a connection
}

// New returns the players of a server, which has the settings of Settings if it is a broker.
func New(server system.Running) *Players {
	if c, ok := server.(*system.ColyseusServer); ok {
		return &Players{game: colyseusGame{c}}
	}
	return &Players{game: switchboardGame{server}}
}

func (p *Players) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
}

func (p *Players) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Fill makes rooms and fills them, the members of each room one after the other.
func (p *Players) Fill(ctx context.Context, rooms, capacity int) error {
	if capacity > maxMembers {
		return fmt.Errorf("%d members are more than %d", capacity, maxMembers)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(joiners)
	for range rooms {
		r := &room{index: len(p.rooms), capacity: capacity}
		p.rooms = append(p.rooms, r)
		group.Go(func() error { return p.fillRoom(ctx, r) })
	}
	return errors.Join(group.Wait(), p.failure())
}

func (p *Players) fillRoom(ctx context.Context, r *room) error {
	for number := 1; number <= r.capacity; number++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		m := &member{room: r, number: number, seen: make([]int32, r.capacity+1)}
		if err := p.game.enter(ctx, m); err != nil {
			return fmt.Errorf("member %d of room %d: %w", number, r.index, err)
		}
		r.members = append(r.members, m)
		if err := m.socket.conn.SetReadDeadline(time.Now().Add(joinTimeout)); err != nil {
			return err
		}
		joined := make(chan error, 1)
		p.readers.Go(func() { m.run(joined, p.fail) })
		if err := <-joined; err != nil {
			return fmt.Errorf("member %d of room %d joins: %w", number, r.index, err)
		}
		if err := m.socket.conn.SetReadDeadline(time.Time{}); err != nil {
			return err
		}
	}
	return nil
}

// CreateEmpty makes rooms without members.
func (p *Players) CreateEmpty(ctx context.Context, rooms int) error { return p.game.create(ctx, rooms) }

// Rooms returns the number of rooms that Fill has made.
func (p *Players) Rooms() int { return len(p.rooms) }

// Move lets the members of the last n rooms change their positions until Verify.
func (p *Players) Move(n int) error {
	rooms := p.rooms[len(p.rooms)-n:]
	for _, r := range rooms {
		r.moving.Store(true)
	}
	for _, r := range rooms {
		for _, m := range r.members {
			if err := m.move(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Delivered returns how many changes have arrived at members.
func (p *Players) Delivered() int64 {
	_, delivered, _ := p.totals()
	return delivered
}

// totals returns how many changes the members have made, and how many have arrived.
func (p *Players) totals() (made, delivered, expected int64) {
	for _, r := range p.rooms {
		var here int64
		for _, m := range r.members {
			here += int64(m.made.Load())
			delivered += m.delivered.Load()
		}
		made += here
		expected += here * int64(len(r.members))
	}
	return made, delivered, expected
}

// drainTimeout limits the time until all changes have arrived.
const drainTimeout = 20 * time.Second

// Verify ends the changes and waits until every change has reached every member of its room.
func (p *Players) Verify(ctx context.Context) error {
	for _, r := range p.rooms {
		r.moving.Store(false)
	}
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	for {
		made, delivered, expected := p.totals()
		switch err := p.failure(); {
		case err != nil:
			return err
		case made == 0:
			return errors.New("no member has changed anything")
		case delivered == expected:
			return nil
		}
		if err := await.Pause(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("%d of %d changes have arrived: %w", delivered, expected, err)
		}
	}
}

// Close ends all connections.
func (p *Players) Close() {
	for _, r := range p.rooms {
		r.closed.Store(true)
		for _, m := range r.members {
			m.socket.close()
		}
	}
	p.readers.Wait()
}
