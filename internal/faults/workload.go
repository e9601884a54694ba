package main

import (
	"fmt"
	"slices"
)

// role is how a client behaves.
type role int

const (
	plain        role = iota
	slow              // its OnMessage blocks now and then
	reconnecting      // its connection is cut every few seconds
	flapping          // its connection is cut every second during the fault
	stalling          // it stops reading its socket during the fault
	moving            // its connection is cut during the fault, and it connects to another broker
)

func (r role) String() string {
	return [...]string{"plain", "slow", "reconnecting", "flapping", "stalling", "moving"}[r]
}

// listener is the kind of listener that a client connects to.
type listener int

const (
	rawTCP        listener = iota
	wsTCP                  // WebSocket on the TCP port
	wsHTTP                 // WebSocket on the HTTP port
	sse                    // Server-Sent Events on the HTTP port
	javaScript             // client/js, WebSocket on the HTTP port
	listenerCount          // the number of kinds
	socketCount   = sse    // package client connects to the kinds below this one
)

func (l listener) String() string {
	return [...]string{"TCP", "WebSocket on TCP", "WebSocket on HTTP", "Server-Sent Events", "JavaScript"}[l]
}

// clientSpec describes one client: one device of a user.
type clientSpec struct {
	client, user string
	channels     []string
	state        string // the channel whose state it follows and changes, "" for none
	role         role
	listener     listener
	reloads      bool // every few seconds; only for javaScript
}

// scale is the size of the load.
type scale struct {
	Clients, Rooms             int
	RoomRate, OtherRate        float64 // pushes a second to each room, and of each other stream
	UserStreams, ClientStreams int
	Batched                    int // user streams that share a batch call
	StateRooms                 int // rooms with a state; the last one changes rarely
	StateWriters               int // clients that change the state of each other one
}

var (
	fullScale  = scale{Clients: 300, Rooms: 12, RoomRate: 8, OtherRate: 2, UserStreams: 40, ClientStreams: 40, Batched: 20, StateRooms: 4, StateWriters: 6}
	shortScale = scale{Clients: 60, Rooms: 6, RoomRate: 6, OtherRate: 2, UserStreams: 12, ClientStreams: 12, Batched: 6, StateRooms: 2, StateWriters: 4}
)

const (
	devicesPerUser = 3
	paddingKiB     = 12 // size of every eighth message, too large for a hint between brokers
)

// newClientSpecs returns the clients. Of 100 clients, percent have the role special.
func newClientSpecs(s scale, special role, percent int) []clientSpec {
	var specs []clientSpec
	inJS := 0 // clients in JavaScript
	for i := range s.Clients {
		c := clientSpec{
			client: fmt.Sprintf("user-%d/device-%d", i/devicesPerUser, i), user: fmt.Sprintf("user-%d", i/devicesPerUser),
			channels: []string{room(s, i), room(s, i/devicesPerUser+s.Rooms/2), sharedChannel},
			listener: listener((i + i/20) % int(listenerCount)), // i/20 spreads the clients of each role over all kinds
		}
		slices.Sort(c.channels)
		c.channels = slices.Compact(c.channels)
		if c.listener != sse {
			c.state = s.stateRoom(c.channels)
		}
		switch {
		case i*37%100 < percent: // spread over users, rooms and listeners
			c.role = special
		case i%20 == 7:
			c.role = reconnecting
		case i%10 == 3:
			c.role = slow
		}
		if c.listener == javaScript {
			inJS++
			c.reloads = inJS%4 == 2 // none of these is slow: a handler that is running at a reload runs again
		}
		specs = append(specs, c)
	}
	return specs
}

func room(s scale, i int) string { return fmt.Sprintf("room-%d", i%s.Rooms) }

// stateRoom returns the first of the channels that has a state, or "".
func (s scale) stateRoom(channels []string) string {
	for i := range s.StateRooms {
		if slices.Contains(channels, room(s, i)) {
			return room(s, i)
		}
	}
	return ""
}

// hasLink reports whether the client connects through a clientLink, which can be cut and paused.
func (c clientSpec) hasLink() bool { return c.role >= reconnecting }

// stream is a sequence of messages to one target, pushed by one goroutine.
type stream struct {
	name   string
	target map[string]any // the target's fields in a push
	queue  string         // queue of its messages: a channel, or "" for the client's inbox
	to     []string       // addressed clients
}

// newStreams returns groups of streams, and each group's rate. A group is pushed in one call.
func newStreams(s scale, specs []clientSpec) (groups [][]stream, rate []float64) {
	inRoom, ofUser := map[string][]string{}, map[string][]string{}
	all := stream{name: "all", target: map[string]any{"all": true}, queue: "$all"}
	for _, m := range specs {
		all.to = append(all.to, m.client)
		ofUser[m.user] = append(ofUser[m.user], m.client)
		for _, channel := range m.channels {
			inRoom[channel] = append(inRoom[channel], m.client)
		}
	}
	add := func(perSecond float64, group ...stream) {
		groups, rate = append(groups, group), append(rate, perSecond)
	}
	add(s.OtherRate, all)
	for i := range s.Rooms {
		name := room(s, i)
		add(s.RoomRate, stream{name: name, target: map[string]any{"channel": name}, queue: name, to: inRoom[name]})
	}
	var batch []stream // the first s.Batched streams share a call, each other has its own
	for i := range s.UserStreams {
		name := fmt.Sprintf("user-%d", i*s.Clients/devicesPerUser/s.UserStreams)
		batch = append(batch, stream{name: name, target: map[string]any{"user": name}, to: ofUser[name]})
		if i >= s.Batched-1 {
			add(s.OtherRate, batch...)
			batch = nil
		}
	}
	for _, m := range directTargets(s, specs) {
		add(s.OtherRate, stream{name: "only-" + m.client, target: map[string]any{"client": m.client}, to: []string{m.client}})
	}
	return groups, rate
}

// directTargets returns the clients that receive direct pushes. Clients whose connections are cut
// come first, because they exercise resending and the duplicate filter.
func directTargets(s scale, specs []clientSpec) []clientSpec {
	var cut, others []clientSpec
	for i, m := range specs {
		switch {
		case m.hasLink():
			cut = append(cut, m)
		case i%devicesPerUser == 1:
			others = append(others, m)
		}
	}
	all := slices.Concat(cut, others)
	return all[:min(s.ClientStreams, len(all))]
}
