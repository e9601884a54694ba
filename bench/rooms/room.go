package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// game is a running server that keeps rooms.
type game interface {
	// PIDs returns the processes of the server, without its Redis.
	PIDs() []int
	// enter opens the connection of a member and asks for a place. The first member of a room creates
	// it and sets its id.
	enter(ctx context.Context, m *member) error
	// create makes rooms without members.
	create(ctx context.Context, rooms int) error
	Stop() error
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

// players is all rooms and members of one server.
type players struct {
	game    game
	rooms   []*room
	readers sync.WaitGroup

	mu  sync.Mutex // guards err
	err error      // the first error of a connection
}

func (p *players) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
}

func (p *players) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// fill makes rooms and fills them, the members of each room one after the other.
func (p *players) fill(ctx context.Context, rooms, capacity int) error {
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

func (p *players) fillRoom(ctx context.Context, r *room) error {
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

// totals returns how many changes the members of some rooms have made, and how many have arrived.
func totals(rooms []*room) (made, delivered, expected int64) {
	for _, r := range rooms {
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

// close ends all connections.
func (p *players) close() {
	for _, r := range p.rooms {
		r.closed.Store(true)
		for _, m := range r.members {
			m.socket.close()
		}
	}
	p.readers.Wait()
}
