package broker_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"switchboard/broker"
	"switchboard/broker/auth"
	"switchboard/broker/namespace"
	"switchboard/queue"
)

// TestCheck: a running broker explains the rights of a token with its current keys and namespaces.
func TestCheck(t *testing.T) {
	const key = "the-key-of-the-console"
	rules := func(secret string, subscribe namespace.Access) broker.AccessOptions {
		set, err := namespace.New([]namespace.Rule{{Name: "room:*", Subscribe: subscribe}})
		if err != nil {
			t.Fatal(err)
		}
		return broker.AccessOptions{
			Keys: keys(t, key+" read"), Namespaces: set,
			Tokens: tokens(t, auth.Options{HS256: [][]byte{[]byte(strings.Repeat(secret, auth.MinSecret))}}),
		}
	}
	sign := func(secret string) string {
		claims := jwt.MapClaims{"sub": "bob", "exp": time.Now().Add(time.Hour).Unix()}
		text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(strings.Repeat(secret, auth.MinSecret)))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) { o.Access = rules("a", namespace.Users) })
	check := func(body string) object {
		t.Helper()
		status, text := i.callWithKey(t, key, "POST", "/v1/check", body)
		if status != http.StatusOK {
			t.Fatalf("%s: %d %s", body, status, text)
		}
		return decode(t, []byte(text))
	}
	subscribe := func(answer object) string {
		return fmt.Sprint(answer["user"], " ", answer["rights"].([]any)[0].(object)["allowed"])
	}
	first, second := sign("a"), sign("b")
	if answer := check(`{"channel":"room:7","token":"` + first + `"}`); subscribe(answer) != "bob true" {
		t.Errorf("a valid token: %v", answer)
	}
	answer := check(`{"channel":"room:7","token":"` + second + `"}`)
	if text := fmt.Sprint(answer["error"]); !strings.HasPrefix(text, "token: bad token") || len(answer) != 2 {
		t.Errorf("a token of another key: %v", answer)
	}
	if err := i.Reload(rules("b", namespace.BackendOnly)); err != nil {
		t.Fatal(err)
	}
	if answer := check(`{"channel":"room:7","token":"` + second + `"}`); subscribe(answer) != "bob false" {
		t.Errorf("after a reload: %v", answer)
	}
	if answer := check(`{"channel":"room:7","token":"` + first + `"}`); answer["error"] == nil {
		t.Errorf("the former key after a reload: %v", answer)
	}
	for _, body := range []string{`{}`, `{"channel":"a","colour":1}`, `{"channel":"a","fields":[` + strings.Repeat(`"f",`, 64) + `"f"]}`} {
		if status, text := i.callWithKey(t, key, "POST", "/v1/check", body); status != http.StatusBadRequest {
			t.Errorf("%.60s: %d %s", body, status, text)
		}
	}
}
