//go:build long

package linear

import (
	"flag"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"switchboard/internal/freeport"
	"switchboard/internal/testbed"
)

var brokerSeeds = flag.Uint64("brokerseeds", 8, "how many histories to check over three brokers")

var brokerSettings = []string{
	"SWITCHBOARD_NAMESPACES=" + fmt.Sprintf(`{"room:*": {subscribe: users, publish: users, state: users, grace: %s, fields: {
		"turn": {write: users}, "count": {write: users}, "doc": {write: users}, "seat/*": {write: claim, max: %d},
		"member/{user}": {write: users, own: always, max: %d}, "part/{n}/*": {write: users, of: "member/{n}"}}}}`,
		brokerGrace, groupLimits["seat/"], groupLimits["member/"]),
	"SWITCHBOARD_LIMITS_MESSAGE_RATE=0", "SWITCHBOARD_LIMITS_USER_READ=0",
	"SWITCHBOARD_TIMES_BEAT=400ms",
}

// startBrokers starts three brokers, which keep their addresses when they start again.
func startBrokers(t *testing.T, program, prefix string) (brokers []*testbed.Broker) {
	t.Helper()
	for i := range 3 {
		b := &testbed.Broker{TCP: "off", Program: testbed.Program{
			Name: fmt.Sprint("b", i), Path: program, Args: []string{"--redis", server.URL(), "--prefix", prefix}, Env: brokerSettings,
		}}
		var err error
		if b.HTTP, err = freeport.Address(); err != nil {
			t.Fatal(err)
		}
		brokers = append(brokers, testbed.RunBroker(t, b))
	}
	return brokers
}

// openDevices returns nine clients: two devices of each of three users, and three backends. The
// first devices own fields. Each client begins at another broker.
func openDevices(t *testing.T, brokers []*testbed.Broker) (stores []store) {
	t.Helper()
	for i, user := range []string{"amy", "bob", "cat", "amy", "bob", "cat", "", "", ""} {
		var addrs []string
		for k := range brokers {
			addrs = append(addrs, brokers[(i+i/3+k)%len(brokers)].HTTP)
		}
		if user == "" {
			s := newHTTPStore(addrs)
			t.Cleanup(s.client.CloseIdleConnections)
			stores = append(stores, s)
			continue
		}
		s := &socketStore{device: device{user: user, client: fmt.Sprint(user, "/tab", i), owner: i < 3}, brokers: addrs}
		if err := s.connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.conn.Stop() })
		stores = append(stores, s)
	}
	return stores
}

// TestBrokers checks histories over three broker processes. The clients call them over HTTP and
// over sockets. One broker is killed in the middle, and starts again later.
func TestBrokers(t *testing.T) {
	dir := t.TempDir()
	if err := testbed.Build(t.Context(), "-o", dir+string(filepath.Separator), "switchboard/cmd/broker"); err != nil {
		t.Fatal(err)
	}
	outcomes := map[string]int{}
	eachSeed(t, *brokerSeeds, func(t *testing.T, seed uint64) (wrong string) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			wrong = overBrokers(t, filepath.Join(dir, "broker"), seed, outcomes)
		})
		return wrong
	})
	t.Log(outcomes)
	for _, outcome := range []string{"no answer", "duplicate", "conflict", "full", "limit", "not_found", "forbidden", "away"} {
		if outcomes[outcome] == 0 && *oneSeed < 0 {
			t.Errorf("no history has the outcome %q", outcome)
		}
	}
}

// overBrokers runs and checks one history.
func overBrokers(t *testing.T, program string, seed uint64, outcomes map[string]int) (wrong string) {
	prefix := newPrefix()
	brokers, h := startBrokers(t, program, prefix), newHistory()
	h.overBrokers = true
	stores := openDevices(t, brokers)
	var ended atomic.Bool
	w := newWorkload(seed)
	w.clients, w.calls, w.ended, w.owners = len(stores), 1e6, ended.Load, false
	restarted := make(chan error, 1)
	go func() {
		defer ended.Store(true)
		victim := brokers[seed%3]
		<-h.after(300)
		victim.Kill()
		<-h.after(200)
		restarted <- victim.Start(t.Context())
		<-h.after(300)
	}()
	w.run(t.Context(), h, stores...)
	if err := <-restarted; err != nil {
		t.Fatal(err)
	}
	log := readLog(t, openStores(t, server.URL(), prefix, 1)[0])
	h.count(outcomes)
	for _, l := range log {
		countEntry(l.Data, outcomes)
	}
	return h.check(log, nil)
}
