//go:build long

package e2e

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"switchboard/client"
	"switchboard/internal/testbed"
)

var (
	reconnectClients = flag.Int("reconnects", 500, "how many clients BenchmarkReconnect connects")
	reconnectScheme  = flag.String("reconnect-scheme", "ws", "the scheme of the Go clients of BenchmarkReconnect: ws or tcp")
)

// BenchmarkReconnect measures how clients come back after outages of the network, and the rate of
// their attempts. Run it by hand:
//
//	go test -tags long ./internal/e2e -run '^$' -bench Reconnect -benchtime 1x
//
// All clients have the URLs of three brokers behind proxies, or of one. SDK, in the environment, is
// the JavaScript module to measure.
func BenchmarkReconnect(b *testing.B) {
	for _, program := range []struct {
		name  string
		start func(ctx context.Context, b *testing.B, r *reconnects, urls []string) (stop func())
		path  string
	}{
		{"JavaScript", startReconnectingNode, "/ws"},
		{"Go", startReconnectingGo, "/ws"},
	} {
		for name, run := range map[string]func(*reconnects){
			"refused": func(r *reconnects) { r.flap(linkRefuses, 4*time.Second) },
			"silent":  func(r *reconnects) { r.flap(linkSilent, 4*time.Second) },
		} {
			b.Run(program.name+"/"+name, func(b *testing.B) {
				for b.Loop() {
					r := startReconnects(b, 3)
					stop := program.start(r.ctx, b, r, r.urls(program.name))
					r.awaitAll("first")
					r.sleep(4 * time.Second)
					run(r)
					stop()
					r.report(b)
				}
			})
		}
		b.Run(program.name+"/two of three silent", func(b *testing.B) {
			for b.Loop() {
				r := startReconnects(b, 3)
				for _, p := range r.proxies[1:] {
					p.set(linkSilent)
				}
				r.began = time.Now()
				stop := program.start(r.ctx, b, r, r.urls(program.name))
				r.awaitAll("first connect")
				r.sleep(4 * time.Second)
				for range 3 {
					r.outage(3*time.Second, func() { r.proxies[0].set(linkRefuses) }, func() { r.proxies[0].set(linkUp) })
					r.sleep(4 * time.Second)
				}
				stop()
				r.report(b)
			}
		})
		for name, run := range map[string]func(*reconnects){
			// The next outage begins a second after the last client is back.
			"one URL": func(r *reconnects) { r.flap(linkRefuses, time.Second) },
			// The next outage begins a second after the one before. The waits are those after the last.
			"one URL, a second of network": (*reconnects).flicker,
		} {
			b.Run(program.name+"/"+name, func(b *testing.B) {
				for b.Loop() {
					r := startReconnects(b, 1)
					stop := program.start(r.ctx, b, r, r.urls(program.name))
					r.awaitAll("first")
					r.sleep(4 * time.Second)
					run(r)
					stop()
					r.report(b)
				}
			})
		}
	}
}

// reconnects records when clients are connected.
type reconnects struct {
	b       *testing.B
	ctx     context.Context
	proxies []*flakyProxy

	began time.Time // of the wait for all clients: the end of the outage

	mu      sync.Mutex // guards the fields below
	up      map[int]bool
	upAt    map[int]time.Time
	changed chan struct{}

	waits []time.Duration // of all clients and outages
	peak  int             // the most connections that reached the brokers in 100 ms after an outage
	tried float64         // attempts in a second of an outage
}

// startReconnects starts brokers, each behind a proxy.
func startReconnects(b *testing.B, brokers int) *reconnects {
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
	b.Cleanup(cancel)
	r := &reconnects{b: b, ctx: ctx, up: map[int]bool{}, upAt: map[int]time.Time{}, changed: make(chan struct{}, 1), began: time.Now()}
	for _, broker := range deploy(b, brokers).brokers {
		address := broker.HTTP
		if *reconnectScheme == "tcp" {
			address = broker.TCP
		}
		p, err := newFlakyProxy(address)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(p.stop)
		r.proxies = append(r.proxies, p)
	}
	return r
}

func (r *reconnects) urls(program string) (urls []string) {
	for _, p := range r.proxies {
		if program == "Go" && *reconnectScheme == "tcp" {
			urls = append(urls, "tcp://"+p.Addr().String())
			continue
		}
		urls = append(urls, "ws://"+p.Addr().String()+"/ws")
	}
	return urls
}

// sleep waits for d: the benchmark is about time.
func (r *reconnects) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-r.ctx.Done():
		r.b.Fatal(r.ctx.Err())
	}
}

func (r *reconnects) set(i int, up bool, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.up[i] = up; up {
		r.upAt[i] = at
	}
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// awaitAll waits until all clients are connected, and records how long each one took since began.
func (r *reconnects) awaitAll(what string) {
	for {
		r.mu.Lock()
		n := 0
		for _, up := range r.up {
			if up {
				n++
			}
		}
		r.mu.Unlock()
		if n == *reconnectClients {
			break
		}
		select {
		case <-r.changed:
		case <-time.After(120 * time.Second):
			r.b.Fatalf("%s: only %d clients are back after two minutes", what, n)
		}
	}
	var waits []time.Duration
	for _, at := range r.upAt {
		waits = append(waits, max(0, at.Sub(r.began)))
	}
	slices.Sort(waits)
	r.b.Logf("%-14s p50 %5.2f s, p99 %5.2f s, last %5.2f s", what, quantile(waits, .5).Seconds(), quantile(waits, .99).Seconds(), waits[len(waits)-1].Seconds())
	if what != "first" {
		r.waits = append(r.waits, waits...)
	}
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[int(float64(len(sorted)-1)*q)]
}

// outages are the lengths of those of flap and flicker.
var outages = []time.Duration{2500 * time.Millisecond, 4600 * time.Millisecond, 3400 * time.Millisecond, 5700 * time.Millisecond}

// setAll returns a function that changes the state of all proxies.
func (r *reconnects) setAll(s linkState) func() {
	return func() {
		for _, p := range r.proxies {
			p.set(s)
		}
	}
}

// flap makes four outages of all proxies, with a pause after all clients are back.
func (r *reconnects) flap(s linkState, between time.Duration) {
	for _, d := range outages {
		r.outage(d, r.setAll(s), r.setAll(linkUp))
		r.sleep(between)
	}
}

// flicker makes four outages of all proxies, with a second between them. It waits for the clients
// after the last one.
func (r *reconnects) flicker() {
	refuse, up := r.setAll(linkRefuses), r.setAll(linkUp)
	last := len(outages) - 1
	for _, d := range outages[:last] {
		refuse()
		r.sleep(d)
		up()
		r.sleep(time.Second)
	}
	r.outage(outages[last], refuse, up)
}

// outage makes one outage, and waits until all clients are back.
func (r *reconnects) outage(d time.Duration, begin, end func()) {
	began := time.Now()
	begin()
	r.sleep(d)
	end()
	r.began = time.Now()
	r.awaitAll(fmt.Sprintf("outage %.1f s", d.Seconds()))
	all := time.Now()
	var tried int
	perTick := map[int64]int{}
	for _, p := range r.proxies {
		p.mu.Lock()
		for _, at := range p.attempts {
			if at.After(began) && at.Before(r.began) {
				tried++
			}
		}
		for _, at := range p.reached {
			if at.After(r.began) && at.Before(all) {
				perTick[at.Sub(r.began).Milliseconds()/100]++
			}
		}
		p.mu.Unlock()
	}
	var ticks []int
	for i := range int64(10) {
		ticks = append(ticks, perTick[i])
	}
	for _, n := range perTick {
		r.peak = max(r.peak, n)
	}
	r.tried = max(r.tried, float64(tried)/d.Seconds())
	r.b.Logf("               %d attempts during the outage; connects in each 100 ms after it: %v", tried, ticks)
}

func (r *reconnects) report(b *testing.B) {
	slices.Sort(r.waits)
	b.ReportMetric(quantile(r.waits, .5).Seconds(), "p50-s")
	b.ReportMetric(quantile(r.waits, .99).Seconds(), "p99-s")
	b.ReportMetric(r.waits[len(r.waits)-1].Seconds(), "last-s")
	b.ReportMetric(r.tried, "attempts/s-away")
	b.ReportMetric(float64(r.peak), "peak/100ms")
	b.ReportMetric(0, "ns/op")
}

func startReconnectingNode(ctx context.Context, b *testing.B, r *reconnects, urls []string) (stop func()) {
	plan, err := json.Marshal(map[string]any{"urls": urls, "clients": *reconnectClients})
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command("node", "js/reconnect.js", string(plan))
	cmd.Env = os.Environ()
	input, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	node := testbed.Run(b, "node", cmd, func(text []byte) {
		var line struct {
			I  int
			Up bool
			At int64
		}
		if err := json.Unmarshal(text, &line); err == nil {
			r.set(line.I, line.Up, time.UnixMilli(line.At))
		}
	})
	return func() {
		_ = input.Close()
		if _, err := node.Wait(ctx); err != nil {
			b.Error(err)
		}
	}
}

func startReconnectingGo(ctx context.Context, b *testing.B, r *reconnects, urls []string) (stop func()) {
	running, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	for i := range *reconnectClients {
		c, err := client.New(client.Options{
			URLs: urls, User: fmt.Sprintf("u%d", i), Client: "go",
			OnState: func(s client.State) {
				switch s.Phase {
				case client.Connected:
					r.set(i, true, time.Now())
				case client.Closed:
					r.set(i, false, time.Now())
				case client.Connecting:
				}
			},
		})
		if err != nil {
			b.Fatal(err)
		}
		all.Go(func() { _ = c.Run(running) })
	}
	return func() { cancel(); all.Wait() }
}
