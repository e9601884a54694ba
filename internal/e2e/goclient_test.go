//go:build long

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"switchboard/client"
)

// A goClient records the events of a client of package client in the ledger.
type goClient struct {
	clientPlan
	ledger *ledger
	client *client.Client
	server chan string // server id of the first connection

	conn int // number of the connection; used only by the callbacks
}

func (r *runner) startGo(t *testing.T, plan clientPlan) {
	t.Helper()
	g := &goClient{clientPlan: plan, ledger: r.ledger, server: make(chan string, 1)}
	var err error
	g.client, err = client.New(client.Options{
		URLs: plan.URLs, Client: plan.Client, User: plan.User, BackoffMin: 20 * time.Millisecond,
		OnMessage: g.message, OnState: g.state,
		OnGap: func(gap client.Gap) { g.record(event{Event: "gap", Detail: fmt.Sprint(gap)}) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := g.client.Run(r.exit); err != nil {
			g.ledger.fail("%s: %v", plan.Client, err)
		}
	}()
	go g.subscribe(r.exit)
	t.Cleanup(func() {
		r.stopGo()
		<-ended
	})
}

func (g *goClient) record(e event) {
	e.Client, e.Conn = g.Client, g.conn
	g.ledger.record(e)
}

// subscribe subscribes to all channels and then records that the client is ready.
func (g *goClient) subscribe(ctx context.Context) {
	for _, channel := range g.Channels {
		if _, err := g.client.Subscribe(ctx, channel, client.SubscribeOptions{}); err != nil {
			g.ledger.fail("%s: %v", g.Client, err)
			return
		}
	}
	g.ledger.record(event{Client: g.Client, Event: "ready", Conn: 1, Server: <-g.server})
}

func (g *goClient) state(s client.State) {
	switch {
	case s.Phase == client.Connected:
		if g.conn++; g.conn == 1 {
			g.server <- s.Server
		} else {
			g.record(event{Event: "ready", Server: s.Server})
		}
	case s.Phase == client.Closed && s.Final:
		g.record(event{Event: "left"})
	case s.Phase == client.Closed:
		g.record(event{Event: "closed", Detail: fmt.Sprint(s.Err)})
	}
}

func (g *goClient) message(m client.Message) {
	var p payload
	if err := json.Unmarshal(m.Data, &p); err != nil {
		g.ledger.fail("%s: payload %.100s: %v", g.Client, m.Data, err)
	}
	g.record(event{Event: "message", Channel: m.Channel, ID: m.ID, Stream: p.Stream, N: p.N, Pad: len(p.Pad)})
}
