package rooms

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// protocol is how one client talks to a game server.
type protocol interface {
	// ready handles a message before the client knows the state of the room. It reports whether the
	// client knows it now.
	ready(m *member, body []byte) (bool, error)
	// appendMove appends the message that changes the position of the client's player.
	appendMove(dst []byte, p position) []byte
	// moves calls do for each change of a position in a message.
	moves(body []byte, do func(position) error) error
	// op is the opcode of the client's messages.
	op() byte
}

// position is the place of a player. Every change moves it in both coordinates. The generator puts
// into it what it needs to check a delivery.
type position struct{ x, y int32 }

// maxMembers is the most members of a room, so that a number fits position.x.
const maxMembers = 63

// positionOf returns the position of a member after some changes.
func positionOf(number int, change int32) position {
	return position{change<<6 | int32(number), change}
}

// member is one player with a connection.
type member struct {
	room     *room
	number   int // 1 for the first member of the room
	socket   *socket
	protocol protocol

	seen      []int32      // last change by number; by the reader
	made      atomic.Int32 // own changes
	delivered atomic.Int64 // changes that arrived, also own ones
}

// run reads until the connection ends. It sends ready on joined when the member knows the state of
// the room, and an error if the server sends anything wrong.
func (m *member) run(joined chan<- error, fail func(error)) {
	err := m.join()
	joined <- err
	if err != nil {
		return
	}
	for err == nil {
		var body []byte
		if body, err = m.socket.read(); err == nil {
			err = m.protocol.moves(body, m.deliver)
		}
	}
	if !m.room.closed.Load() {
		fail(fmt.Errorf("member %d of room %d: %w", m.number, m.room.index, err))
	}
}

func (m *member) join() error {
	for {
		body, err := m.socket.read()
		if err != nil {
			return err
		}
		if done, err := m.protocol.ready(m, body); done || err != nil {
			return err
		}
	}
}

// deliver checks one change. A member makes its next change when its last one has come back.
func (m *member) deliver(p position) error {
	number, change := int(p.x&maxMembers), p.y
	if number < 1 || number >= len(m.seen) || p != positionOf(number, change) {
		return fmt.Errorf("%v is the position of no member", p)
	}
	if last := m.seen[number]; change != last+1 {
		return fmt.Errorf("change %d of member %d arrived after %d", change, number, last)
	}
	m.seen[number] = change
	m.delivered.Add(1)
	if number != m.number || !m.room.moving.Load() {
		return nil
	}
	return m.move()
}

// move makes the next change. At most one change of a member is under way.
func (m *member) move() error {
	change := m.made.Add(1)
	return m.socket.sendBuilt(m.protocol.op(), func(dst []byte) []byte {
		return m.protocol.appendMove(dst, positionOf(m.number, change))
	})
}

var errShort = errors.New("the message is too short")
