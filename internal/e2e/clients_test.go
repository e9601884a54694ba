//go:build long

package e2e

import (
	"fmt"
	"slices"

	"switchboard/internal/testbed"
)

const (
	clientCount = 300
	rooms       = 12
)

// A kind is the implementation of a client, and the listener that it connects to.
type kind int

const (
	wsHTTP kind = iota // the npm package ws, on the HTTP port
	wsTCP              // the same on the TCP port
	netcat
	page   // a WebSocket of the page in Chromium
	golang // package client
)

// A clientPlan describes one client. It is also the plan that session.js takes.
type clientPlan struct {
	Client   string   `json:"client"`
	User     string   `json:"user"`
	URLs     []string `json:"urls"` // of the brokers, in the order of use
	Channels []string `json:"channels"`
	AckEvery int      `json:"ackEvery"`

	kind kind
}

// kindOf distributes the kinds so that one user has devices of several kinds.
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

// planClients plans the clients. The three devices of a user begin on three brokers.
func planClients(brokers []*testbed.Broker) []clientPlan {
	var plans []clientPlan
	for i := range clientCount {
		plan := clientPlan{
			Client: fmt.Sprintf("%s/device-%d", userOf(i/3), i), User: userOf(i / 3),
			Channels: []string{roomOf(i), roomOf(i/3 + 5)}, AckEvery: 1 + i%7,
			kind: kindOf(i),
		}
		plan.Channels = slices.Compact(plan.Channels)
		for k := range brokers {
			plan.URLs = append(plan.URLs, plan.kind.url(brokers[(i+k)%len(brokers)], i))
		}
		plans = append(plans, plan)
	}
	return plans
}

func userOf(i int) string { return fmt.Sprintf("user-%d", i) }
func roomOf(i int) string { return fmt.Sprintf("room-%d", i%rooms) }

func (k kind) url(b *testbed.Broker, i int) string {
	switch {
	case k == netcat, k == golang && i%2 == 0:
		return "tcp://" + b.TCP
	case k == wsTCP, k == page && i%2 == 0:
		return "ws://" + b.TCP + "/ws"
	}
	return "ws://" + b.HTTP + "/ws"
}
