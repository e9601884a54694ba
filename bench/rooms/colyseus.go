package rooms

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"switchboard/bench/system"
)

// Codes of messages of Colyseus: the first byte.
const (
	codeJoin  = 10
	codeMove  = 13 // ROOM_DATA
	codeState = 14
	codePatch = 15
)

// colyseusGame is a running Colyseus server.
type colyseusGame struct{ *system.ColyseusServer }

// seat is the answer to a request for a seat.
type seat struct {
	SessionID string `json:"sessionId"`
	RoomID    string `json:"roomId"`
	ProcessID string `json:"processId"`
}

const jsonHeader = "Content-Type: application/json\r\n"

// takeSeat asks the matchmaker for a seat in a new connection, as each player does.
func (g colyseusGame) takeSeat(ctx context.Context, path string, body []byte) (s seat, err error) {
	conn, err := system.DialHTTP(g.Addr())
	if err != nil {
		return s, err
	}
	defer conn.Close()
	answer, err := conn.Post(ctx, "/matchmake/"+path, jsonHeader, body)
	if err != nil {
		return s, err
	}
	if err = json.Unmarshal(answer, &s); err == nil && s.SessionID == "" {
		err = fmt.Errorf("no seat: %.200s", answer)
	}
	return s, err
}

// enter implements game.
func (g colyseusGame) enter(ctx context.Context, m *member) error {
	path, body := "create/field", fmt.Appendf(nil, `{"capacity":%d}`, m.room.capacity)
	if m.number > 1 {
		path, body = "joinById/"+m.room.id, []byte("{}")
	}
	s, err := g.takeSeat(ctx, path, body)
	if err != nil {
		return err
	}
	m.room.id = s.RoomID
	m.protocol = &colyseusProtocol{}
	m.socket, err = openSocket(g.Addr(), "/"+s.ProcessID+"/"+s.RoomID+"?sessionId="+s.SessionID)
	return err
}

// create implements game.
func (g colyseusGame) create(ctx context.Context, rooms int) error {
	conn, err := system.DialHTTP(g.Addr())
	if err != nil {
		return err
	}
	defer conn.Close()
	for range rooms {
		if _, err := conn.Post(ctx, "/matchmake/create/field", jsonHeader, []byte(`{"capacity":4,"keep":true}`)); err != nil {
			return err
		}
	}
	return nil
}

type colyseusProtocol struct{}

func (*colyseusProtocol) op() byte { return opBinary }

func (*colyseusProtocol) ready(m *member, body []byte) (bool, error) {
	switch {
	case len(body) == 0:
		return false, errShort
	case body[0] == codeJoin:
		return false, m.socket.send(opBinary, []byte{codeJoin})
	}
	return body[0] == codeState, nil
}

// appendMove appends the type "move" and the map {x, y} in MessagePack.
func (*colyseusProtocol) appendMove(dst []byte, p position) []byte {
	const int32Mark = "\xd2"
	dst = append(append(dst, codeMove), "\xa4move\x82\xa1x"+int32Mark...)
	dst = binary.BigEndian.AppendUint32(dst, uint32(p.x))
	dst = append(dst, "\xa1y"+int32Mark...)
	return binary.BigEndian.AppendUint32(dst, uint32(p.y))
}

// moves reads a patch: for each player 255, the number of the player's object, and both fields.
func (*colyseusProtocol) moves(body []byte, do func(position) error) error {
	if len(body) == 0 {
		return errShort
	}
	if body[0] != codePatch {
		return fmt.Errorf("the message has code %d, not that of a patch", body[0])
	}
	for rest := body[1:]; len(rest) > 0; {
		if rest[0] == rootMark || bytes.HasPrefix(rest, mapStart) {
			return nil // a member has joined; none changes its position meanwhile
		}
		size := playerSize(rest)
		if size == 0 || len(rest) < size {
			return fmt.Errorf("%x is not a change of a player", rest)
		}
		fields := rest[size-fieldsSize:]
		p := position{int32(binary.LittleEndian.Uint32(fields[1:])), int32(binary.LittleEndian.Uint32(fields[6:]))}
		if fields[0]&^set != 0 || fields[5]&^set != 1 {
			return fmt.Errorf("%x does not change x and y", rest[:size])
		}
		if err := do(p); err != nil {
			return err
		}
		rest = rest[size:]
	}
	return nil
}

// The room's state is object 0, which needs no number, and its map of players is object 1.
const rootMark = 0x80

var mapStart = []byte{255, 1}

const (
	set        = 0x80 // operation of a field, next to its index
	fieldsSize = 2 * (1 + 4)
)

// playerSize returns the size of the change of a player, 0 if it is none. The number of an object
// is one byte, or 0xcc and a byte, or 0xcd and two bytes.
func playerSize(b []byte) int {
	switch {
	case len(b) < 2 || b[0] != 255:
		return 0
	case b[1] < 0x80:
		return 2 + fieldsSize
	case b[1] == 0xcc:
		return 3 + fieldsSize
	case b[1] == 0xcd:
		return 4 + fieldsSize
	}
	return 0
}
