package main

import (
	"fmt"
	"slices"
)

// role is how a client behaves.
type role int

const (
	plain    role = iota
	slow          // its OnMessage blocks now and then
	restless      // its connection is cut every few seconds
	flappy        // its connection is cut every second during the fault
	idler         // its socket is left unread during the fault
	mover         // its connection is cut during the fault, and it goes elsewhere
)

func (r role) String() string {
	return [...]string{"plain", "slow", "restless", "flappy", "idler", "mover"}[r]
}

// knock is the listener that a client connects to.
type knock int

const (
	rawTCP knock = iota
	wsTCP        // WebSocket on the TCP port
	wsHTTP       // WebSocket on the HTTP port
	knocks
)

func (k knock) String() string {
	return [...]string{"TCP", "WebSocket on TCP", "WebSocket on HTTP"}[k]
}

// member is one client: one device of a user.
type member struct {
	client, user string
	channels     []string
	role         role
	knock        knock
}

// scale is the size of a scenario.
type scale struct {
	Clients, Rooms             int
	RoomRate, OtherRate        float64 // pushes a second: of each room, of each other stream
	UserStreams, ClientStreams int
	Batched                    int // streams of users that share a batch call
}

var (
	fullScale  = scale{Clients: 240, Rooms: 12, RoomRate: 8, OtherRate: 2, UserStreams: 40, ClientStreams: 40, Batched: 20}
	shortScale = scale{Clients: 60, Rooms: 6, RoomRate: 6, OtherRate: 2, UserStreams: 12, ClientStreams: 12, Batched: 6}
)

const (
	devices = 3  // of a user
	padded  = 12 // KiB of every eighth message, too much to travel in a hint between brokers
)

// newCast makes the clients. special is what as many of 100 do during the fault.
func newCast(s scale, special role, percent int) []member {
	var cast []member
	for i := range s.Clients {
		m := member{
			client: fmt.Sprintf("user-%d/device-%d", i/devices, i), user: fmt.Sprintf("user-%d", i/devices),
			channels: []string{room(s, i), room(s, i/devices+s.Rooms/2), hall}, knock: knock(i % int(knocks)),
		}
		slices.Sort(m.channels)
		m.channels = slices.Compact(m.channels)
		switch {
		case i*37%100 < percent: // spread over users, rooms and listeners
			m.role = special
		case i%20 == 7:
			m.role = restless
		case i%10 == 3:
			m.role = slow
		}
		cast = append(cast, m)
	}
	return cast
}

func room(s scale, i int) string { return fmt.Sprintf("room-%d", i%s.Rooms) }

// tapped says whether the client needs a connection that can be cut and held.
func (m member) tapped() bool { return m.role >= restless }

// stream is a sequence of messages to one target, pushed by one goroutine.
type stream struct {
	name   string
	target map[string]any // of the push
	queue  string         // that it is in at its addressees
	to     []string       // clients
}

// newStreams gives the groups of streams: each group is pushed together, in one call.
func newStreams(s scale, cast []member) (groups [][]stream, rate []float64) {
	inRoom, ofUser := map[string][]string{}, map[string][]string{}
	everyone := stream{name: "everyone", target: map[string]any{"all": true}, queue: "$all"}
	for _, m := range cast {
		everyone.to = append(everyone.to, m.client)
		ofUser[m.user] = append(ofUser[m.user], m.client)
		for _, channel := range m.channels {
			inRoom[channel] = append(inRoom[channel], m.client)
		}
	}
	add := func(perSecond float64, group ...stream) {
		groups, rate = append(groups, group), append(rate, perSecond)
	}
	add(s.OtherRate, everyone)
	for i := range s.Rooms {
		name := room(s, i)
		add(s.RoomRate, stream{name: name, target: map[string]any{"channel": name}, queue: name, to: inRoom[name]})
	}
	var batch []stream // the first of them share a call, the others have one each
	for i := range s.UserStreams {
		name := fmt.Sprintf("user-%d", i*s.Clients/devices/s.UserStreams)
		batch = append(batch, stream{name: name, target: map[string]any{"user": name}, to: ofUser[name]})
		if i >= s.Batched-1 {
			add(s.OtherRate, batch...)
			batch = nil
		}
	}
	for _, m := range singled(s, cast) {
		add(s.OtherRate, stream{name: "only-" + m.client, target: map[string]any{"client": m.client}, to: []string{m.client}})
	}
	return groups, rate
}

// singled are the clients that are pushed to by name: first those whose lines are cut, who
// put resending and its filter to the test.
func singled(s scale, cast []member) []member {
	var cut, others []member
	for i, m := range cast {
		switch {
		case m.tapped():
			cut = append(cut, m)
		case i%devices == 1:
			others = append(others, m)
		}
	}
	all := slices.Concat(cut, others)
	return all[:min(s.ClientStreams, len(all))]
}
