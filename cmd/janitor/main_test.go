package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"switchboard/configs"
	"switchboard/internal/redispipe"
	"switchboard/internal/redistest"
	"switchboard/internal/state"
	"switchboard/internal/testbed"
	"switchboard/queue"
)

var binary string

func TestMain(m *testing.M) {
	var dir string
	os.Exit(testbed.Main(&dir, func() int {
		binary = filepath.Join(dir, "janitor")
		return m.Run()
	}, "."))
}

const (
	secret  = "hunter2"
	signing = secret + " signs the webhooks"
)

func TestStartErrors(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	tests := []struct {
		name string
		args []string
		env  []string
		code int
		want string
	}{
		{"unknown flag", []string{"--tcp=x"}, nil, 2, "janitor: unknown flag: --tcp\nTry janitor --help.\n"},
		{"no Redis", nil, nil, 2, "janitor: --redis: missing"},
		{"bad variable", nil, []string{"SWITCHBOARD_JANITOR_MAX_AGE=x"}, 1, "janitor: SWITCHBOARD_JANITOR_MAX_AGE: want a duration"},
		{"bad Redis URL", []string{"--redis=redis://:" + secret + "@h:x"}, nil, 1, "janitor: bad Redis URL: host"},
		{"port taken", []string{"--redis=redis://localhost", "--http", taken.Addr().String()}, nil, 1, "janitor: http: listen tcp"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := testbed.Execute(t, tt.env, binary, tt.args...)
			if r.Code != tt.code || !strings.Contains(r.Stderr, tt.want) || strings.Count(r.Stderr, "\n") != tt.code || strings.Contains(r.Stderr, secret) {
				t.Errorf("%+v", r)
			}
		})
	}
	if r := testbed.Execute(t, nil, binary, "--help"); r.Code != 0 || r.Stdout != configs.JanitorHelp() {
		t.Errorf("%+v", r)
	}
}

// addOrphan adds a channel that no server holds to the list of channels in Redis. listed reports
// whether the channel is still in the list.
func addOrphan(t *testing.T, server *redistest.Server) (listed func() bool) {
	t.Helper()
	client, ctx := server.Client(t), t.Context()
	if err := client.SAdd(ctx, "t:ch_list", "news").Err(); err != nil {
		t.Fatal(err)
	}
	return func() bool {
		n, err := client.Exists(ctx, "t:ch_list").Result()
		if err != nil {
			t.Fatal(err)
		}
		return n == 1
	}
}

func TestOnce(t *testing.T) {
	server := redistest.Start(t, "--maxmemory-policy", "allkeys-lru") // a janitor accepts eviction
	listed := addOrphan(t, server)
	environ := []string{"SWITCHBOARD_REDIS=" + server.URL(), "SWITCHBOARD_PREFIX=t:", "SWITCHBOARD_LOG_FORMAT=json"}
	r := testbed.Execute(t, environ, binary, "--once", "--dry-run")
	if r.Code != 0 || !listed() || !strings.Contains(r.Stderr, `"dry_run":true`) || !strings.Contains(r.Stderr, "brokers refuse this Redis") {
		t.Errorf("a dry run: %+v", r)
	}
	if r := testbed.Execute(t, environ, binary, "--once"); r.Code != 0 || listed() || !strings.Contains(r.Stderr, `"pruned":1`) {
		t.Errorf("%+v", r)
	}
	server.Kill()
	if r := testbed.Execute(t, environ, binary, "--once"); r.Code != 1 || !strings.HasPrefix(r.Stderr, "janitor: connect to Redis: ") {
		t.Errorf("without Redis: %+v", r)
	}
}

// TestCheck checks that janitor check prints the differences of states, also of one that has lost
// all its fields and of one that has lost its position, and that it changes nothing.
func TestCheck(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	q := queue.NewRedis(redispipe.New(client, redispipe.Options{}), queue.Options{Prefix: "t:"})
	for _, channel := range []string{"room:1", "room:2", "room:3"} {
		_, err := q.AppendChannel(t.Context(), queue.ChannelPush{Channel: channel, Update: &state.Update{
			Ops: []state.Op{{Field: "a", Kind: state.Set, Value: []byte("1")}}, Writer: state.BackendHolder,
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"check", "--redis", server.URL(), "--prefix=t:", "--log-format=json"}
	r := testbed.Execute(t, nil, binary, args...)
	if r.Code != 0 || r.Stdout != "" || !strings.Contains(r.Stderr, `"states":3`) || !strings.Contains(r.Stderr, "all records agree") {
		t.Errorf("without differences: %+v", r)
	}
	for _, err := range []error{
		client.ZAdd(t.Context(), "t:st_n_{room:1}", redis.Z{Member: "b"}).Err(),
		client.Del(t.Context(), "t:st_{room:2}", "t:st_n_{room:2}").Err(),
		client.Del(t.Context(), "t:mq_m_{room:3}").Err(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"room:1: st_n_: b is there, and does not belong to a field",
		`room:2: all st_ keys are lost: mq_m says that there is a state (st_keep "-1", st_bytes "2", st_due "0"); remedy: HSET mq_m of the channel st_keep 1, ` +
			"and write all fields again: that first ends the old state for all subscribers",
		"room:3: mq_m is lost: the st_ keys with 1 fields are not read; remedy: write all fields again: the first write deletes these keys; " +
			"if they are of no use, delete them",
	}
	for range 2 {
		r = testbed.Execute(t, nil, binary, args...)
		got := strings.Split(strings.TrimSpace(r.Stdout), "\n")
		slices.Sort(got)
		if r.Code != 1 || !slices.Equal(got, want) || !strings.Contains(r.Stderr, "janitor: check: findings: 3") {
			t.Errorf("with differences: %q, %+v", got, r)
		}
	}
	server.Kill()
	if r := testbed.Execute(t, nil, binary, args...); r.Code != 1 || r.Stdout != "" {
		t.Errorf("without Redis: %+v", r)
	}
	if r := testbed.Execute(t, nil, binary, "check", "--nothing"); r.Code != 2 {
		t.Errorf("with an unknown flag: %+v", r)
	}
}

func TestRuns(t *testing.T) {
	server := redistest.Start(t)
	p := testbed.RunCommand(t, nil, binary, "--redis", server.URL(), "--prefix=t:", "--http=127.0.0.1:0", "--queues-every=10ms")
	url := fmt.Sprintf("http://%s", p.Await("working")["http"])
	listed := addOrphan(t, server)
	p.Await("janitor: cleaned up")
	if listed() {
		t.Error("the log says that it cleaned up, but the channel is still listed")
	}
	server.Kill()
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 503, "/metrics": 200} {
		response, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != want || path == "/metrics" && !strings.Contains(string(body), "switchboard_janitor_rounds_total") ||
			path == "/readyz" && string(body) != `{"ready":false,"reason":"Redis does not answer","step":"store"}`+"\n" {
			t.Errorf("%s: %d %s %v", path, response.StatusCode, body, err)
		}
	}
	p.Interrupt(syscall.SIGTERM)
	if code := p.ExitCode(); code != 0 {
		t.Errorf("the exit code is %d", code)
	}
}
