package e2e

import (
	"fmt"
	"slices"
)

const (
	castSize = 300
	rooms    = 12
)

// kind is what a client is made of, and which listener it knocks at.
type kind int

const (
	wsHTTP kind = iota // the npm package ws, on the HTTP port
	wsTCP              // the same on the event loop
	netcat
	page   // a socket of the page in Chromium
	golang // package client
)

// member is one client of the cast. It is also the plan that session.js takes.
type member struct {
	Client   string   `json:"client"`
	User     string   `json:"user"`
	URLs     []string `json:"urls"` // where it goes, in this order
	Channels []string `json:"channels"`
	AckEvery int      `json:"ackEvery"`

	kind kind
}

// kindOf spreads the kinds so that one user has devices of several.
func kindOf(i int) kind {
	switch {
	case i%14 == 7: // 21 of them
		return netcat
	case i%70 == 40: // 4
		return page
	case i%20 == 13: // 13
		return golang
	}
	return kind(i % 2)
}

// newCast makes the clients: three devices of each user on three brokers.
func newCast(brokers []*instance) []member {
	var cast []member
	for i := range castSize {
		m := member{
			Client: fmt.Sprintf("%s/device-%d", userOf(i/3), i), User: userOf(i / 3),
			Channels: []string{roomOf(i), roomOf(i/3 + 5)}, AckEvery: 1 + i%7,
			kind: kindOf(i),
		}
		m.Channels = slices.Compact(m.Channels)
		for k := range brokers {
			m.URLs = append(m.URLs, m.kind.url(brokers[(i+k)%len(brokers)], i))
		}
		cast = append(cast, m)
	}
	return cast
}

func userOf(i int) string { return fmt.Sprintf("user-%d", i) }
func roomOf(i int) string { return fmt.Sprintf("room-%d", i%rooms) }

func (k kind) url(b *instance, i int) string {
	switch {
	case k == netcat, k == golang && i%2 == 0:
		return "tcp://" + b.tcp
	case k == wsTCP, k == page && i%2 == 0:
		return "ws://" + b.tcp + "/ws"
	}
	return "ws://" + b.http + "/ws"
}
