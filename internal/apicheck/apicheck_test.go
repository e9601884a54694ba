package apicheck

import (
	"slices"
	"testing"
)

func TestCompare(t *testing.T) {
	problems, err := Compare([]Call{
		{"self", "GET", "/v1/self"},
		{"channels", "GET", "/v1/channels?prefix=a&cursor=b&limit=3"},
		{"queue", "GET", "/v1/clients/alice%2Fphone/queue?wait=1"},
		{"client", "GET", "/v1/clients/phone"},
		{"me", "GET", "/v1/accounts/me/friends"},
		{"servers", "GET", "/v1/servers?page=1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"me calls GET /v1/accounts/me/friends, which is no operation for API keys",
		`servers sends the parameter "page", which listServers does not have`,
		"no method calls push",
		"no method calls getUserClient",
		"no method calls getClientQueue",
	} {
		if !slices.Contains(problems, want) {
			t.Errorf("not found: %s", want)
		}
	}
	for _, made := range []string{"getSelf", "listChannels", "getUserClientQueue", "getClient", "listServers", "register", "getHealth"} {
		if slices.Contains(problems, "no method calls "+made) {
			t.Errorf("%s is missing", made)
		}
	}
}
