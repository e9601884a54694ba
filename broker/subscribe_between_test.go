package broker_test

import (
	"fmt"
	"maps"
	"net/http"
	"sync"
	"testing"

	"github.com/golang-jwt/jwt/v5"
)

// subscriptions reads events until the client has exactly the subscriptions in want. Then it
// checks that no other event was on its way.
func (p *testClient) subscriptions(want map[string]bool) {
	p.t.Helper()
	got := map[string]bool{}
	apply := func(e object) {
		switch channel, _ := e["channel"].(string); e["type"] {
		case "subscribed":
			got[channel] = true
		case "unsubscribed":
			delete(got, channel)
		}
	}
	for !maps.Equal(got, want) {
		apply(p.receive())
	}
	p.send(`{"type":"ping","ref":9}`)
	for e := p.receive(); e["type"] != "pong"; e = p.receive() {
		apply(e)
	}
	if !maps.Equal(got, want) {
		p.t.Fatalf("subscribed to %v, want %v", got, want)
	}
}

// TestSubscribeBetweenConnections has a client that leaves one broker and connects to another while
// the backend subscribes and unsubscribes it. It ends up with the subscriptions of the last calls:
// the connect finds the change, or the call finds the connection.
func TestSubscribeBetweenConnections(t *testing.T) {
	t.Parallel()
	for name, startAll := range threeBrokers(t, onlyByBackend(t)) {
		t.Run(name, func(t *testing.T) {
			brokers := startAll()
			token := signed(t, jwt.MapClaims{"sub": "alice"})
			want := map[string]bool{}
			var p *testClient
			for n := range 40 {
				// Of three rounds, two subscribe, and the third undoes the first.
				path, channel := "subscribe", fmt.Sprint("team:", n)
				if n%3 == 2 {
					path, channel = "unsubscribe", fmt.Sprint("team:", n-2)
				}
				whose := []string{"users/alice/", "clients/alice/phone/"}[n/3%2]
				var call sync.WaitGroup
				call.Go(func() {
					status, answer := brokers[n%3].call(t, "POST", "/v1/"+whose+path, fmt.Sprintf(`{"channels":[%q]}`, channel))
					if status != http.StatusOK {
						t.Errorf("%s %s: %d %v", path, channel, status, answer)
					}
				})
				if p != nil && n%2 == 0 {
					p.close() // in the other rounds the new connection ends the old one
				}
				p = dialers["tcp"](t, brokers[(n+1)%3])
				p.connectToken("phone", token)
				call.Wait()
				if path == "subscribe" {
					want[channel] = true
				} else {
					delete(want, channel)
				}
				p.subscriptions(want)
			}
		})
	}
}
