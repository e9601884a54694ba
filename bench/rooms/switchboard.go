package rooms

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"switchboard/bench/system"
)

// Settings are the settings of the broker that differ from the defaults: the rooms and holds
// are on, and clients may send as often as they can.
var Settings = []string{
	"SWITCHBOARD_KIT_ROOMS={modes: {game: {capacity: 50, empty_life: 24h}}}", "SWITCHBOARD_KIT_HOLDS={}",
	"SWITCHBOARD_LIMITS_MESSAGE_RATE=0", "SWITCHBOARD_LIMITS_BYTE_RATE=0", "SWITCHBOARD_LIMITS_USER_READ=0",
}

// switchboardGame is a running broker.
type switchboardGame struct{ system.Running }

// enter implements game. The client sends all its requests at once.
func (g switchboardGame) enter(_ context.Context, m *member) (err error) {
	if m.socket, err = openSocket(g.Addr(), "/ws"); err != nil {
		return err
	}
	m.room.id = fmt.Sprint("r", m.room.index)
	method, data := "create", fmt.Sprintf(`{"id":%q,"mode":"game","capacity":%d}`, m.room.id, m.room.capacity)
	if m.number > 1 {
		method, data = "join", fmt.Sprintf(`{"room":%q}`, m.room.id)
	}
	user := fmt.Sprintf("u%d-%d", m.room.index, m.number)
	m.protocol = &switchboardProtocol{socket: m.socket}
	for _, request := range []string{
		fmt.Sprintf(`{"type":"connect","client":"%s/c","user":%q}`, user, user),
		fmt.Sprintf(`{"type":"request","ref":1,"method":"room.%s","data":%s}`, method, data),
		fmt.Sprintf(`{"type":"subscribe","channel":"room:%s","state":true}`, m.room.id),
	} {
		if err := m.socket.send(opText, []byte(request)); err != nil {
			return err
		}
	}
	return nil
}

// create implements game.
func (g switchboardGame) create(ctx context.Context, rooms int) error {
	conn, err := system.DialHTTP(g.Addr())
	if err != nil {
		return err
	}
	defer conn.Close()
	for i := range rooms {
		if _, err := conn.Post(ctx, "/v1/rooms", jsonHeader, fmt.Appendf(nil, `{"id":"e%d","mode":"game","capacity":4}`, i)); err != nil {
			return err
		}
	}
	return nil
}

// switchboardProtocol is the native protocol over WebSocket.
type switchboardProtocol struct {
	socket     *socket
	n          int    // the number in the room
	head, tail []byte // of a publish
}

func (*switchboardProtocol) op() byte { return opText }

func (p *switchboardProtocol) ready(m *member, body []byte) (bool, error) {
	var event struct {
		Type, Message string
		More          bool
		Data          struct{ N int }
	}
	if err := json.Unmarshal(body, &event); err != nil {
		return false, fmt.Errorf("%.200s: %w", body, err)
	}
	switch event.Type {
	case "error":
		return false, fmt.Errorf("the broker answered %.200s", body)
	case "reply":
		p.n = event.Data.N
		p.head = fmt.Appendf(nil, `{"type":"publish","channel":"room:%s","set":{"p/%d/pos":{"x":`, m.room.id, p.n)
		p.tail = []byte(`}}}`)
	case "state":
		if p.n == 0 {
			return false, errors.New("the state came before the number")
		}
		return !event.More, nil
	case "ping":
		return false, p.pong()
	}
	return false, nil
}

func (p *switchboardProtocol) pong() error { return p.socket.send(opText, []byte(`{"type":"pong"}`)) }

func (p *switchboardProtocol) appendMove(dst []byte, at position) []byte {
	dst = strconv.AppendInt(append(dst, p.head...), int64(at.x), 10)
	dst = strconv.AppendInt(append(dst, `,"y":`...), int64(at.y), 10)
	return append(dst, p.tail...)
}

var (
	messageStart = []byte(`{"type":"message"`)
	errorStart   = []byte(`{"type":"error"`)
	gapStart     = []byte(`{"type":"gap"`)
	pingStart    = []byte(`{"type":"ping"`)
	fieldMark    = []byte(`/pos":{"x":`)
	yMark        = []byte(`,"y":`)
)

// moves finds the changes of positions in a message. Members that join are other changes.
func (p *switchboardProtocol) moves(body []byte, do func(position) error) error {
	switch {
	case bytes.HasPrefix(body, errorStart) || bytes.HasPrefix(body, gapStart):
		return fmt.Errorf("the broker sent %.200s", body)
	case bytes.HasPrefix(body, pingStart):
		return p.pong()
	case !bytes.HasPrefix(body, messageStart):
		return nil // published
	}
	for {
		_, rest, found := bytes.Cut(body, fieldMark)
		if !found {
			return nil
		}
		x, rest := leadingInt(rest)
		rest, found = bytes.CutPrefix(rest, yMark)
		y, rest := leadingInt(rest)
		if !found {
			return fmt.Errorf("a position has no y: %.200s", body)
		}
		if err := do(position{x, y}); err != nil {
			return err
		}
		body = rest
	}
}

// leadingInt reads the digits at the start of b.
func leadingInt(b []byte) (n int32, rest []byte) {
	for len(b) > 0 && '0' <= b[0] && b[0] <= '9' {
		n, b = n*10+int32(b[0]-'0'), b[1:]
	}
	return n, b
}
