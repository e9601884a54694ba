package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"switchboard/internal/await"
	"switchboard/internal/redistest"
	"switchboard/internal/signedreq"
	"switchboard/internal/testbed"
)

// start runs a broker on a free port and returns the URL of that port.
func start(t *testing.T, environ []string, args ...string) (*testbed.Command, string) {
	t.Helper()
	p := testbed.RunCommand(t, environ, binary, append([]string{"--http=127.0.0.1:0", "--tcp=off"}, args...)...)
	return p, fmt.Sprintf("http://%s", p.Await("listening")["http"])
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// awaitStatus waits until url answers with code.
func awaitStatus(t *testing.T, url string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	await.NoError(ctx, t, url, func() error {
		if got, body := get(t, url); got != code {
			return fmt.Errorf("status %d %s, want %d", got, body, code)
		}
		return nil
	})
}

func TestSingleInstance(t *testing.T) {
	p, url := start(t, []string{"SWITCHBOARD_AUTH_KEY=" + secret})
	if open := p.Await("single instance: the store is in memory and ends with this process; no API keys")["open"]; open != true {
		t.Error("the warning lacks the field open")
	}
	unknown := p.Await("these variables belong to no setting")
	if fmt.Sprint(unknown["variables"]) != "[SWITCHBOARD_AUTH_KEY]" || strings.Contains(p.Tail(0), secret) {
		t.Errorf("got %v", unknown)
	}
	if urls, _ := p.Await("console")["url"].([]any); len(urls) != 1 || urls[0] != url+"/console/" {
		t.Errorf("the console is at %q", urls)
	}
	awaitStatus(t, url+"/readyz", http.StatusOK)
	if _, metrics := get(t, url+"/metrics"); !strings.Contains(metrics, "go_goroutines") || !strings.Contains(metrics, "switchboard_janitor_") {
		t.Error("metrics of the runtime or of the janitor are missing")
	}
	p.Interrupt(syscall.SIGTERM)
	if code := p.ExitCode(); code != 0 {
		t.Errorf("the exit code is %d", code)
	}
}

// TestSingleInstanceSendsEvents: a broker without Redis makes and sends events itself.
func TestSingleInstanceSendsEvents(t *testing.T) {
	received := make(chan string, 10)
	backend := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var delivery struct{ Events []struct{ Type, User string } }
		if err := signedreq.Decode(r, tokenSecret, &delivery); err != nil {
			t.Error(err)
		}
		for _, e := range delivery.Events {
			received <- e.Type + " " + e.User
		}
	}))
	defer backend.Close()
	p := testbed.RunCommand(t, []string{"SWITCHBOARD_WEBHOOKS_URL=" + backend.URL, "SWITCHBOARD_WEBHOOKS_SECRETS=" + tokenSecret},
		binary, "--http=127.0.0.1:0", "--tcp=127.0.0.1:0")
	conn, err := net.Dial("tcp", fmt.Sprint(p.Await("listening")["tcp"]))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, `{"type":"connect","client":"phone","user":"ann"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"user_online ann", "user_offline ann"} {
		select {
		case got := <-received:
			if got != want {
				t.Errorf("received %q, want %q", got, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%q was not received", want)
		}
		_ = conn.Close()
	}
	if strings.Contains(p.Tail(0), secret) {
		t.Error("the secret is in the log")
	}
}

// TestWarnsAlsoAfterReload: the broker logs its warnings at the start and after each reload.
func TestWarnsAlsoAfterReload(t *testing.T) {
	keys, hooks := file(t, "# all users may read this\nplain:"+tokenSecret+"\n"), file(t, tokenSecret)
	for _, path := range []string{keys, hooks} {
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p, _ := start(t, []string{
		"SWITCHBOARD_AUTH_KEYS_FILE=" + keys, "SWITCHBOARD_HOOKS_SECRETS_FILE=" + hooks,
		"SWITCHBOARD_AUTH_JWKS_URL=http://127.0.0.1:1/", "SWITCHBOARD_AUTH_AUDIENCE=chat",
	})
	warned := func() {
		t.Helper()
		p.Await("single instance")
		p.Await("an API key is configured in plain text")
		if missing := p.Await("auth.jwks_url without these")["missing"]; fmt.Sprint(missing) != "[auth.issuer]" {
			t.Errorf("missing: %v", missing)
		}
		if files := p.Await("every user of this machine may read")["files"]; fmt.Sprint(files) != fmt.Sprint([]string{keys, hooks}) {
			t.Errorf("files: %v", files)
		}
	}
	warned()
	p.Interrupt(syscall.SIGHUP)
	p.Await("reloaded API keys, token keys and namespaces")
	warned()
	if strings.Contains(p.Tail(0), tokenSecret) || strings.Contains(p.Tail(0), `"open"`) {
		t.Error("the log contains a secret, or the field open")
	}
}

// TestRedisStartsLater: the broker starts before Redis, and the log has no password.
func TestRedisStartsLater(t *testing.T) {
	server := redistest.Start(t, "--requirepass", secret)
	server.Kill()
	p, url := start(t, nil, "--redis", "redis://:"+secret+"@"+server.Addr, "--prefix=t:")
	p.Await("Redis does not answer")
	if code, body := get(t, url+"/healthz"); code != http.StatusOK {
		t.Errorf("/healthz: %d %s", code, body)
	}
	if code, body := get(t, url+"/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("/readyz: %d %s", code, body)
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	p.Await("Redis answers")
	awaitStatus(t, url+"/readyz", http.StatusOK)
	_, metrics := get(t, url+"/metrics")
	for _, name := range []string{"switchboard_redis_seconds_count", "switchboard_redis_errors_total", "switchboard_redis_commands_total"} {
		if !strings.Contains(metrics, name) {
			t.Errorf("%s is missing", name)
		}
	}
	if strings.Contains(metrics, "switchboard_redis_errors_total 0\n") {
		t.Error("the earlier failures were not counted")
	}
	p.Interrupt(syscall.SIGINT)
	if code := p.ExitCode(); code != 0 {
		t.Errorf("the exit code is %d", code)
	}
	if strings.Contains(p.Tail(0), secret) {
		t.Error("the password is in the log")
	}
}

func TestRefusesRedisThatEvicts(t *testing.T) {
	server := redistest.Start(t, "--maxmemory-policy", "allkeys-lru")
	p, _ := start(t, nil, "--redis", server.URL())
	if code := p.ExitCode(); code != 1 {
		t.Errorf("the exit code is %d", code)
	}
	lines := strings.Split(strings.TrimSpace(p.Tail(0)), "\n")
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "broker: redis evicts keys: maxmemory-policy of "+server.Addr+" is allkeys-lru") {
		t.Errorf("the last line is %q", last)
	}
}

// TestSecondSignal: a second signal ends the process at once, although a call is under way.
func TestSecondSignal(t *testing.T) {
	p, url := start(t, nil, "--drain-time=1h")
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /v1/push HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, len("HTTP/1.1 100"))); err != nil { // the broker reads the body now
		t.Fatal(err)
	}
	p.Interrupt(syscall.SIGTERM)
	p.Await("shutting down")
	// The process handles the first signal shortly after that line. A second signal before that has
	// no effect, so the test repeats it.
	p.SignalUntilEnd(syscall.SIGTERM)
	if code := p.ExitCode(); code != -1 {
		t.Errorf("the exit code is %d, want the end by a signal", code)
	}
}

// TestSpareProcsSetting: a process sets GOMAXPROCS by runtime.spare_procs and the environment.
func TestSpareProcsSetting(t *testing.T) {
	runtime.SetDefaultGOMAXPROCS() // also without the variable
	cpus := runtime.GOMAXPROCS(0)
	for setting, want := range map[string]int{"off": max(2, cpus), "3": cpus + 3} {
		_, url := start(t, []string{"SWITCHBOARD_RUNTIME_SPARE_PROCS=" + setting})
		_, metrics := get(t, url+"/metrics")
		if line := fmt.Sprintf("\ngo_sched_gomaxprocs_threads %d\n", want); !strings.Contains(metrics, line) {
			t.Errorf("%s: GOMAXPROCS is not %d", setting, want)
		}
	}
	_, url := start(t, []string{"SWITCHBOARD_RUNTIME_SPARE_PROCS=off", fmt.Sprint("GOMAXPROCS=", runtime.NumCPU()+5)})
	code, metrics := get(t, url+"/metrics")
	if line := fmt.Sprintf("\ngo_sched_gomaxprocs_threads %d\n", runtime.NumCPU()+5); code != http.StatusOK || !strings.Contains(metrics, line) {
		t.Error("GOMAXPROCS in the environment has no effect")
	}
}
