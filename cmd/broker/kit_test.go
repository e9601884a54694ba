package main

import (
	"fmt"
	"io"
	"net/http"
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

// TestKitOverRedis writes with one broker and reads with another one.
func TestKitOverRedis(t *testing.T) {
	redis := redistest.Start(t)
	environ := []string{
		"SWITCHBOARD_REDIS=redis://" + redis.Addr,
		"SWITCHBOARD_PEER_SECRET=" + strings.Repeat("s", 32),
		"SWITCHBOARD_KIT_ROOMS={}", "SWITCHBOARD_KIT_HOLDS={}", "SWITCHBOARD_KIT_BOARDS={}",
	}
	_, a := start(t, environ)
	_, b := start(t, environ)
	for _, call := range []struct{ method, path, body, read, want string }{
		{"POST", "/v1/rooms", `{"id":"7","mode":"default"}`, "/v1/rooms/7", `"capacity":16`},
		{"PUT", "/v1/holds/show", `{"capacity":9}`, "/v1/holds/show", `"free":9`},
		{"POST", "/v1/boards/arena/scores", `{"player":"amy","score":5}`, "/v1/boards/arena", `"count":1`},
	} {
		if got := send(t, call.method, a+call.path, call.body); !strings.HasPrefix(got, "200 ") {
			t.Errorf("%s %s: %s", call.method, call.path, got)
		}
		if got := send(t, "GET", b+call.read, ""); !strings.Contains(got, call.want) {
			t.Errorf("GET %s: %s, want %s", call.read, got, call.want)
		}
	}
	if _, err := keytable.Check(t.Context(), redis.Client(t)); err != nil {
		t.Error(err)
	}
}
