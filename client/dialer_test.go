package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/internal/wire"
)

// The states of an address of a network.
const (
	up          = "up"          // a broker answers
	refuses     = "refuses"     // there is no listener
	unreachable = "unreachable" // nothing answers the dial
	frozen      = "frozen"      // connections open, and nothing more
	ends        = "ends"        // a broker accepts clients, and ends their connections
	overloaded  = "overloaded"  // a broker asks for a delay of a minute
	slow        = "slow"        // a broker answers, and each connection takes 8 s
)

// A network has an address for each URL of a client.
type network struct {
	*testing.T
	client *Client

	mu     sync.Mutex // guards the fields below
	states map[string]string
	dials  []string
	open   []net.Conn
	ups    []string // the addresses that have accepted the client
	waits  []time.Duration
}

// inNetwork runs a client with the addresses a:1, b:1 and c:1, as many as there are states.
func inNetwork(t *testing.T, states []string, test func(n *network)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := &network{T: t, states: map[string]string{}}
		var urls []string
		for i, state := range states {
			address := string(rune('a'+i)) + ":1"
			n.states[address] = state
			urls = append(urls, "tcp://"+address)
		}
		var err error
		n.client, err = New(Options{URLs: urls, OnState: n.onState})
		if err != nil {
			t.Fatal(err)
		}
		n.client.netDial = n.dial
		ctx, end := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() { result <- n.client.Run(ctx) }()
		test(n)
		end()
		if err := <-result; err != nil {
			t.Error(err)
		}
		synctest.Wait()
	})
}

func (n *network) onState(s State) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case s.Phase == Connected:
		n.ups = append(n.ups, strings.TrimPrefix(s.URL, "tcp://"))
	case s.Phase == Closed && !s.Final:
		n.waits = append(n.waits, s.RetryIn)
	}
}

func (n *network) dial(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	n.dials = append(n.dials, address)
	state := n.states[address]
	n.mu.Unlock()
	switch state {
	case refuses:
		return nil, errors.New("connection refused")
	case unreachable:
		<-ctx.Done()
		return nil, ctx.Err()
	case slow:
		if !pause(ctx, 8*time.Second) {
			return nil, ctx.Err()
		}
	}
	ours, theirs := net.Pipe()
	n.mu.Lock()
	n.open = append(n.open, theirs)
	n.mu.Unlock()
	go n.serve(theirs, state)
	return ours, nil
}

func (n *network) serve(c net.Conn, state string) {
	defer c.Close()
	for lines := bufio.NewScanner(c); lines.Scan(); {
		switch {
		case state == frozen:
		case strings.Contains(lines.Text(), `"connect"`) && state == overloaded:
			fmt.Fprintln(c, `{"type":"closing","code":"overloaded","reconnect":true,"after_ms":60000}`)
			return
		case strings.Contains(lines.Text(), `"connect"`):
			fmt.Fprintln(c, `{"type":"connected","client":"phone","server":"b1","ping":3600}`)
			if state == ends {
				return
			}
		}
	}
}

// set changes all states. It ends the open connections of addresses that are not up.
func (n *network) set(state string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for address := range n.states {
		n.states[address] = state
	}
	for _, c := range n.open {
		c.Close()
	}
	n.open = nil
}

// connected waits until the client is connected for the nth time, and returns how long that took,
// and the address.
func (n *network) connected(nth int) (took time.Duration, address string) {
	n.Helper()
	began := time.Now()
	for {
		synctest.Wait()
		n.mu.Lock()
		ups := slices.Clone(n.ups)
		n.mu.Unlock()
		if len(ups) >= nth {
			return time.Since(began), ups[nth-1]
		}
		if !pause(n.Context(), 10*time.Millisecond) || time.Since(began) > time.Hour {
			n.Fatalf("not connected after %s", time.Since(began))
		}
	}
}

func (n *network) dialCount() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.dials)
}

func (n *network) lastWait() time.Duration {
	synctest.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.waits[len(n.waits)-1]
}

func TestSilentURLsAreOvertaken(t *testing.T) {
	for range 20 {
		inNetwork(t, []string{unreachable, unreachable, up}, func(n *network) {
			took, address := n.connected(1)
			if address != "c:1" || took > 2*stagger+20*time.Millisecond {
				n.Errorf("connected to %s after %s", address, took)
			}
			n.mu.Lock()
			defer n.mu.Unlock()
			if len(n.waits) > 0 {
				n.Errorf("failures were reported: %v", n.waits)
			}
		})
	}
}

// TestFrozenURLsAreLeft: a connection that opens, and a server that does not answer connect.
func TestFrozenURLsAreLeft(t *testing.T) {
	for range 20 {
		inNetwork(t, []string{frozen, up, frozen}, func(n *network) {
			if took, address := n.connected(1); address != "b:1" || took > 2*patience+20*time.Millisecond {
				n.Errorf("connected to %s after %s", address, took)
			}
		})
	}
	inNetwork(t, []string{frozen}, func(n *network) {
		pause(n.Context(), connectTimeout-time.Millisecond)
		synctest.Wait()
		if len(n.waits) > 0 || n.dialCount() != 1 {
			n.Error("the only URL was left before connectTimeout")
		}
	})
}

func TestRefusedURLsAreLeftAtOnce(t *testing.T) {
	for range 20 {
		inNetwork(t, []string{refuses, refuses, up}, func(n *network) {
			if took, _ := n.connected(1); took > 20*time.Millisecond {
				n.Errorf("connected after %s", took)
			}
		})
	}
}

// TestOutagesDoNotAddUp: after an outage of seconds the client is back within its length, however
// many there were, also with one URL and a second between them. A broker that ends connections at
// once is tried less and less often.
func TestOutagesDoNotAddUp(t *testing.T) {
	for _, kind := range []string{refuses, unreachable} {
		inNetwork(t, []string{up, up, up}, func(n *network) {
			n.connected(1)
			for i := range 20 {
				pause(n.Context(), 4*time.Second)
				n.set(kind)
				pause(n.Context(), 5700*time.Millisecond)
				n.set(up)
				if took, _ := n.connected(i + 2); took > 8*time.Second {
					n.Errorf("%s %d: back after %s", kind, i, took)
				}
			}
		})
	}
	var waits []time.Duration
	for range 100 {
		inNetwork(t, []string{up}, func(n *network) {
			n.connected(1)
			for i, outage := range []time.Duration{2500, 4600, 3400, 5700} {
				pause(n.Context(), time.Second)
				n.set(refuses)
				pause(n.Context(), outage*time.Millisecond)
				n.set(up)
				took, _ := n.connected(i + 2)
				waits = append(waits, took)
			}
		})
	}
	slices.Sort(waits)
	if p50, p99 := waits[len(waits)/2], waits[len(waits)*99/100]; p50 > 2*time.Second || p99 > 8*time.Second {
		t.Errorf("back after %s at p50, %s at p99", p50, p99)
	}
	inNetwork(t, []string{ends, ends, ends}, func(n *network) {
		pause(n.Context(), 10*time.Minute)
		if n := n.dialCount(); n > 250 {
			t.Errorf("%d connects in 10 min", n)
		}
	})
}

// TestLossIsSpread: the clients of an instance that ends do not all come to another one at once.
func TestLossIsSpread(t *testing.T) {
	inNetwork(t, []string{up, up, up}, func(n *network) {
		_, first := n.connected(1)
		pause(n.Context(), time.Minute)
		n.set(up)
		if wait := n.lastWait(); wait < 200*time.Millisecond || wait > 800*time.Millisecond {
			n.Errorf("the next attempt is in %s", wait)
		}
		if _, second := n.connected(2); second == first {
			n.Errorf("connected again to %s", second)
		}
	})
}

func TestDelayOfTheBrokerIsForAllURLs(t *testing.T) {
	inNetwork(t, []string{overloaded, overloaded}, func(n *network) {
		if wait := n.lastWait(); wait != time.Minute {
			n.Fatalf("the next attempt is in %s", wait)
		}
		n.client.Wake()
		pause(n.Context(), 59*time.Second)
		synctest.Wait()
		if got := n.dialCount(); got != 1 {
			n.Errorf("%d connects within the delay", got)
		}
		pause(n.Context(), time.Second)
		synctest.Wait()
		if got := n.dialCount(); got != 2 {
			n.Errorf("%d connects after the delay", got)
		}
	})
}

func TestWakeForgetsDelays(t *testing.T) {
	for _, kind := range []string{refuses, unreachable} {
		inNetwork(t, []string{kind, kind}, func(n *network) {
			pause(n.Context(), 10*time.Minute)
			n.set(up)
			n.client.Wake()
			if took, _ := n.connected(1); took > stagger+20*time.Millisecond {
				n.Errorf("%s: connected after %s", kind, took)
			}
			n.client.Wake() // changes nothing
			n.set(refuses)
			if wait := n.lastWait(); wait < 200*time.Millisecond {
				n.Errorf("%s: the next attempt is in %s", kind, wait)
			}
		})
	}
}

// TestPatienceGrows: on a network where an answer takes longer than patience, it is awaited in the
// end.
func TestPatienceGrows(t *testing.T) {
	inNetwork(t, []string{slow, slow}, func(n *network) {
		if took, _ := n.connected(1); took > time.Minute {
			n.Errorf("connected after %s", took)
		}
	})
}

// TestSameInstanceAfterSlow: an end that is about the client does not make it go elsewhere.
func TestSameInstanceAfterSlow(t *testing.T) {
	for range 10 {
		inNetwork(t, []string{up, up, up}, func(n *network) {
			_, first := n.connected(1)
			n.mu.Lock()
			c := n.open[0]
			n.mu.Unlock()
			fmt.Fprintf(c, `{"type":"closing","code":%q,"reconnect":true}`+"\n", wire.CloseSlow)
			if _, second := n.connected(2); second != first {
				n.Errorf("connected to %s, then to %s", first, second)
			}
		})
	}
}
