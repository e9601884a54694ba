package main

import (
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"switchboard/internal/keytable"
	"switchboard/internal/redistest"
)

func send(t *testing.T, method, url, body string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %s", response.StatusCode, strings.TrimSpace(string(text)))
}

// TestKitOverRedis writes with one broker and reads with another one. Accounts have a Redis of
// their own.
func TestKitOverRedis(t *testing.T) {
	redis, accounts := redistest.Start(t), redistest.Start(t)
	environ := []string{
		"SWITCHBOARD_REDIS=redis://" + redis.Addr,
		"SWITCHBOARD_PEER_SECRET=" + strings.Repeat("s", 32),
		"SWITCHBOARD_KIT_ROOMS={}", "SWITCHBOARD_KIT_HOLDS={}", "SWITCHBOARD_KIT_BOARDS={}", "SWITCHBOARD_KIT_SESSIONS={}", "SWITCHBOARD_KIT_SCENES={}",
		"SWITCHBOARD_KIT_ACCOUNTS={signing_key: " + strings.Repeat("k", 32) + ", redis: \"redis://" + accounts.Addr + "\"}",
	}
	_, a := start(t, environ)
	_, b := start(t, environ)
	for _, call := range []struct{ method, path, body, read, want string }{
		{"POST", "/v1/rooms", `{"id":"7","mode":"default"}`, "/v1/rooms/7", `"capacity":16`},
		{"PUT", "/v1/holds/show", `{"capacity":9}`, "/v1/holds/show", `"free":9`},
		{"POST", "/v1/boards/arena/scores", `{"player":"amy","score":5}`, "/v1/boards/arena", `"count":1`},
		{"PUT", "/v1/sessions/amy", `{"room":"7"}`, "/v1/sessions/amy", `"data":{"room":"7"}`},
		{"POST", "/v1/users/amy/subscribe", `{"channels":["team:7"]}`, "/v1/users/amy", `"user":"amy"`},
		{"POST", "/v1/clients/amy%2Fphone/subscribe", `{"channels":["team:7"]}`, "/v1/users/amy", `"user":"amy"`},
		{"POST", "/v1/clients/tab-1/unsubscribe", `{"channels":["team:7"]}`, "/v1/users/amy", `"user":"amy"`},
		{"POST", "/v1/accounts", `{"name":"amy","password":"correct horse"}`, "/v1/accounts", `"total":1`},
	} {
		if got := send(t, call.method, a+call.path, call.body); !strings.HasPrefix(got, "200 ") {
			t.Errorf("%s %s: %s", call.method, call.path, got)
		}
		if got := send(t, "GET", b+call.read, ""); !strings.Contains(got, call.want) {
			t.Errorf("GET %s: %s, want %s", call.read, got, call.want)
		}
	}
	for server, row := range map[*redistest.Server]string{redis: `^lb_\{board:.+\}$`, accounts: `^ix_\{.+\}$`} {
		count, err := keytable.Check(t.Context(), server.Client(t))
		if err != nil || count[row] != 1 {
			t.Errorf("the keys are not as in the table: %v, %v", err, count)
		}
	}
}

// TestKitNeedsSigningKey starts brokers that could not verify each other's tokens of accounts.
func TestKitNeedsSigningKey(t *testing.T) {
	for _, setting := range []string{"SWITCHBOARD_REDIS=redis://127.0.0.1:1", "SWITCHBOARD_AUTH_JWKS_URL=https://issuer.example/keys"} {
		environ := []string{setting, "SWITCHBOARD_PEER_SECRET=" + strings.Repeat("s", 32), "SWITCHBOARD_KIT_ACCOUNTS={}"}
		command := exec.CommandContext(t.Context(), binary, "--http=127.0.0.1:0", "--tcp=off")
		command.Env = environ
		if out, err := command.CombinedOutput(); err == nil || !strings.Contains(string(out), "kit.accounts.signing_key: it is missing") {
			t.Errorf("%s: %v, %s", setting, err, out)
		}
	}
}
