//go:build long

package linear

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"

	"switchboard/internal/freeport"
	"switchboard/internal/proc"
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

// broker is a broker process. It keeps its address when it starts again.
type broker struct {
	program, redis, prefix string
	name, addr             string
	process                *proc.Process
}

func (b *broker) start(ctx context.Context) error {
	cmd := exec.Command(b.program, "--name", b.name, "--redis", b.redis, "--prefix", b.prefix,
		"--http", b.addr, "--tcp", "off", "--log-format", "json")
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, brokerSettings...) // not our settings
	var err error
	if b.process, err = proc.Start(b.name, cmd, nil); err != nil {
		return err
	}
	if _, err := b.process.Logged(ctx, "joined", "server"); err != nil {
		return fmt.Errorf("%w\n%s", err, b.process.Tail(10))
	}
	return nil
}

// startBrokers starts three brokers.
func startBrokers(t *testing.T, program, prefix string) (brokers []*broker) {
	t.Helper()
	for i := range 3 {
		addr, err := freeport.Address()
		if err != nil {
			t.Fatal(err)
		}
		b := &broker{program: program, redis: server.URL(), prefix: prefix, name: fmt.Sprint("b", i), addr: addr}
		if err := b.start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.process.Kill() })
		brokers = append(brokers, b)
	}
	return brokers
}

// openDevices returns nine clients: two devices of each of three users, and three backends. The
// first devices own fields. Each client begins at another broker.
func openDevices(t *testing.T, brokers []*broker) (stores []store) {
	t.Helper()
	for i, user := range []string{"amy", "bob", "cat", "amy", "bob", "cat", "", "", ""} {
		var addrs []string
		for k := range brokers {
			addrs = append(addrs, brokers[(i+i/3+k)%len(brokers)].addr)
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
		t.Cleanup(func() { s.disconnect() })
		stores = append(stores, s)
	}
	return stores
}

// TestBrokers checks histories over three broker processes. The clients call them over HTTP and
// over sockets. One broker is killed in the middle, and starts again later.
func TestBrokers(t *testing.T) {
	dir := t.TempDir()
	if err := proc.GoBuild(t.Context(), "-o", dir+string(filepath.Separator), "switchboard/cmd/broker"); err != nil {
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
		victim.process.Kill()
		<-h.after(200)
		restarted <- victim.start(t.Context())
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
