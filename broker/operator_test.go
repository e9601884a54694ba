package broker_test

import (
	"net/http"
	"strings"
	"testing"

	"switchboard/broker"
	"switchboard/internal/await"
	"switchboard/queue"
)

// statusOf returns the status of a GET with the given headers, as name, value, …
func statusOf(t *testing.T, url string, headers ...string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if req.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			req.Host = headers[i+1]
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

const profile = "/debug/pprof/cmdline"

func TestPagesForOperators(t *testing.T) {
	for name, c := range map[string]struct {
		change         func(*broker.Options)
		http, operator map[string]int // paths and statuses
	}{
		"all on the HTTP port": {
			nil, map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 200, profile: 404}, nil,
		},
		"probes on a separate port": {
			func(o *broker.Options) { o.Listen.Probes = "127.0.0.1:0" },
			map[string]int{"/healthz": 404, "/readyz": 404, "/metrics": 404, profile: 404, "/v1/servers": 200},
			map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 200, profile: 404, "/v1/servers": 404, "/ws": 404},
		},
	} {
		t.Run(name, func(t *testing.T) {
			i := start(t, memoryStore(queue.Options{}), c.change)
			probes := i.Addrs.Probes
			if probes == "" {
				probes = i.HTTP
			}
			await.True(t, "the broker is ready", func() bool { return statusOf(t, "http://"+probes+"/readyz") == http.StatusOK })
			for addr, paths := range map[string]map[string]int{i.HTTP: c.http, i.Addrs.Probes: c.operator} {
				for path, want := range paths {
					if got := statusOf(t, "http://"+addr+path); got != want {
						t.Errorf("%s of %s is %d, want %d", path, addr, got, want)
					}
				}
			}
		})
	}
}

// TestHealthzStaysWithTheLinks: the port of the links serves /healthz, since the janitor probes it
// there.
func TestHealthzStaysWithTheLinks(t *testing.T) {
	s, _ := redisStore(t, shared.Client(t), testBeat)
	i := start(t, s, func(o *broker.Options) { o.Listen.Probes = "127.0.0.1:0" })
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 404, "/metrics": 404} {
		if got := statusOf(t, "http://"+i.HTTP+path); got != want {
			t.Errorf("%s is %d, want %d", path, got, want)
		}
	}
}

func TestProfiles(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) { o.Listen.Pprof = "127.0.0.1:0" })
	url := "http://" + i.Addrs.Pprof + profile
	if got := statusOf(t, url); got != http.StatusOK {
		t.Errorf("the profiles answer %d, want 200", got)
	}
	for name, headers := range map[string][]string{
		"through a proxy":                           {"X-Forwarded-For", "203.0.113.7"},
		"through a proxy with another header":       {"Forwarded", "for=203.0.113.7"},
		"a foreign host name":                       {"Host", "attacker.example"},
		"a foreign host name with our port":         {"Host", "attacker.example:6060"},
		"a foreign host name that begins with ours": {"Host", "127.0.0.1.attacker.example"},
		"an address that is not loopback":           {"Host", "192.0.2.1:6060"},
	} {
		if got := statusOf(t, url, headers...); got != http.StatusNotFound {
			t.Errorf("%s: the profiles answer %d, want 404", name, got)
		}
	}
	if got := statusOf(t, url, "Host", "localhost:6060"); got != http.StatusOK {
		t.Errorf("localhost: the profiles answer %d, want 200", got)
	}
	for _, addr := range []string{"0.0.0.0:6060", ":6060", "192.0.2.1:6060", "6060", "on"} {
		s := memoryStore(queue.Options{})
		_, err := broker.New(broker.Options{
			Store:  broker.StoreOptions{Registry: s.registry, Queue: s.queue},
			Listen: broker.ListenOptions{Pprof: addr},
			Access: broker.AccessOptions{Insecure: true},
		})
		if err == nil || !strings.HasPrefix(err.Error(), "pprof: ") {
			t.Errorf("%q: %v", addr, err)
		}
	}
}
