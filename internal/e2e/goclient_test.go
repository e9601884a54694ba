package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"switchboard/client"
)

// goClient tells the ledger what a client of package client sees.
type goClient struct {
	member
	ledger *ledger
	client *client.Client
	server chan string // where the first connection is

	conn int // belongs to the callbacks
}

func (tr *troupe) startGo(t *testing.T, m member) {
	t.Helper()
	g := &goClient{member: m, ledger: tr.ledger, server: make(chan string, 1)}
	var err error
	g.client, err = client.New(client.Options{
		URLs: m.URLs, Client: m.Client, User: m.User, BackoffMin: 20 * time.Millisecond,
		OnMessage: g.message, OnState: g.state,
		OnGap: func(gap client.Gap) { g.see(event{Event: "gap", Detail: fmt.Sprint(gap)}) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := g.client.Run(tr.exit); err != nil {
			g.ledger.complain("%s: %v", m.Client, err)
		}
	}()
	go g.subscribe(tr.exit)
	t.Cleanup(func() {
		tr.leave()
		<-ended
	})
}

func (g *goClient) see(e event) {
	e.Client, e.Conn = g.Client, g.conn
	g.ledger.see(e)
}

// subscribe announces the client when it follows all its channels.
func (g *goClient) subscribe(ctx context.Context) {
	for _, channel := range g.Channels {
		if _, err := g.client.Subscribe(ctx, channel, client.SubscribeOptions{}); err != nil {
			g.ledger.complain("%s: %v", g.Client, err)
			return
		}
	}
	g.ledger.see(event{Client: g.Client, Event: "ready", Conn: 1, Server: <-g.server})
}

func (g *goClient) state(s client.State) {
	switch {
	case s.Phase == client.Connected:
		if g.conn++; g.conn == 1 {
			g.server <- s.Server
		} else {
			g.see(event{Event: "ready", Server: s.Server})
		}
	case s.Phase == client.Closed && s.Final:
		g.see(event{Event: "left"})
	case s.Phase == client.Closed:
		g.see(event{Event: "closed", Detail: fmt.Sprint(s.Err)})
	}
}

func (g *goClient) message(m client.Message) {
	var p payload
	if err := json.Unmarshal(m.Data, &p); err != nil {
		g.ledger.complain("%s: payload %.100s: %v", g.Client, m.Data, err)
	}
	g.see(event{Event: "message", Channel: m.Channel, ID: m.ID, Stream: p.Stream, N: p.N, Pad: len(p.Pad)})
}
