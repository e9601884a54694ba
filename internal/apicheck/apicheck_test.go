package apicheck

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestCompare(t *testing.T) {
	ifMatch := http.Header{"If-Match": {`"1"`}}
	problems, err := Compare([]Call{
		{By: "self", Method: "GET", Target: "/v1/self", Repeated: true},
		{By: "channels", Method: "GET", Target: "/v1/channels?prefix=a&cursor=b&limit=3", Repeated: true},
		{By: "queue", Method: "GET", Target: "/v1/clients/alice%2Fphone/queue?wait=1", Repeated: true},
		{By: "client", Method: "GET", Target: "/v1/clients/phone", Repeated: true},
		{By: "friends", Method: "GET", Target: "/v1/accounts/me/friends", Repeated: true},
		{By: "servers", Method: "GET", Target: "/v1/servers?page=1", Repeated: true},
		{By: "user", Method: "GET", Target: "/v1/users/alice"},
		{By: "push", Method: "POST", Target: "/v1/push", Body: json.RawMessage(`{"channel":"a","data":1,"key":""}`), Repeated: true},
		{By: "batch", Method: "POST", Target: "/v1/push/batch", Body: json.RawMessage(`{"messages":[{"key":"a"},{"channel":7}]}`)},
		{By: "put", Method: "PUT", Target: "/v1/holds/play", Header: ifMatch, Body: json.RawMessage(`{"import":[{"id":"a","chair":"A1"}],"capacity":"1"}`)},
		{By: "get", Method: "GET", Target: "/v1/holds/play", Header: ifMatch, Repeated: true},
		{By: "start", Method: "POST", Target: "/v1/rooms/7/start", Body: json.RawMessage(`{"now":true}`), Repeated: true},
		{By: "kick", Method: "POST", Target: "/v1/rooms/7/kick"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"friends calls GET /v1/accounts/me/friends, which is no operation",
		`servers sends the parameter "page", which listServers does not have`,
		"user: repeated is false, and x-repeat of getUser says true",
		"push: repeated is true, and x-repeat of push says false",
		"batch sends messages/channel as number, and pushBatch has the type string",
		"put sends the member import/chair, which putResource does not have",
		"put sends capacity as string, and putResource has the type integer",
		"get sends If-Match, which getResource does not take",
		"start sends a body to startRoom, which takes none",
		"kick sends no body to kickMember",
		"no method sends body import/user of putResource",
		"no method sends query after of getUserClientQueue",
		"no method sends header If-None-Match of putResource",
		"no method calls getUserClient",
		"no method calls getClientQueue",
	} {
		if !slices.ContainsFunc(problems, func(p string) bool { return strings.HasPrefix(p, want) }) {
			t.Errorf("not found: %s", want)
		}
	}
	for _, wrong := range []string{
		"no method calls getSelf", "no method calls listChannels", "no method calls getUserClientQueue", "no method calls register", "no method calls getHealth",
		"no method sends query prefix of listChannels", "no method sends body import/id of putResource", "no method sends header If-Match of putResource", "put: repeated",
	} {
		if i := slices.IndexFunc(problems, func(p string) bool { return strings.HasPrefix(p, wrong) }); i >= 0 {
			t.Errorf("found: %s", problems[i])
		}
	}
}

func TestCompareAnswer(t *testing.T) {
	answer := json.RawMessage(`{"room":"r","list":[{"id":1,"name":"a"}]}`)
	for returned, want := range map[string]string{
		`{"room":"r","list":[{"id":1,"name":"a"}]}`:          "",
		`{"list":[{"id":1,"name":"a"}]}`:                     "the result lacks room",
		`{"room":"r","list":[{"id":1}]}`:                     "the result lacks list/0/name",
		`{"room":"r","list":[{"id":1,"name":"a"}],"more":1}`: "the result has more",
		`{"room":"r","list":[{"id":2,"name":"a"}]}`:          `at "list/0/id" the answer is 1, the result 2`,
		`[{"id":1,"name":"a"}]`:                              "the result",
	} {
		problems := strings.Join(CompareAnswer("get", answer, json.RawMessage(returned), nil), "\n")
		if (want == "") != (problems == "") || !strings.Contains(problems, want) {
			t.Errorf("%s: %s", returned, problems)
		}
	}
	if problems := CompareAnswer("get", answer, json.RawMessage(`[{"id":1,"name":"a"}]`), []string{"room"}); problems != nil {
		t.Error(problems)
	}
	if problems := CompareAnswer("get", answer, answer, []string{"chair"}); len(problems) != 1 {
		t.Error(problems)
	}
}
