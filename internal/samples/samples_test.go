//go:build long

package samples

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/broker"
	"switchboard/broker/auth"
	"switchboard/broker/namespace"
	"switchboard/internal/testbed"
	"switchboard/internal/textconn"
	"switchboard/kit/kittest"
)

const (
	samples = "../../docs/samples"
	// patience is how long a test waits for what must happen.
	patience = time.Minute

	apiKey      = "key-of-the-backend"
	tokenSecret = "a secret of thirty-two bytes or more"
)

// A language has three programs.
type language struct {
	name                      string
	run                       []string // runs a file, with arguments
	serve                     []string // runs the webhook, if it differs; ADDRESS is where
	push, issueToken, webhook string
}

var languages = []language{
	{"PHP", []string{"php"}, []string{"php", "-S", "ADDRESS"}, "push.php", "issue_token.php", "webhook.php"},
	{"Python", []string{"python3", "-B"}, nil, "push.py", "issue_token.py", "webhook.py"},
	{"Ruby", []string{"ruby", "-w"}, nil, "push.rb", "issue_token.rb", "webhook.rb"},
	// Java compiles a single file in memory. For programs of this size the first compiler is enough.
	{"Java", []string{"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"}, nil, "Push.java", "IssueToken.java", "Webhook.java"},
}

// eachLanguage runs a test for all languages at once.
func eachLanguage(t *testing.T, test func(t *testing.T, l language)) {
	for _, l := range languages {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			test(t, l)
		})
	}
}

// program returns a command that runs a file of the samples.
func program(t *testing.T, run []string, file string, args []string, environ ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), run[0], append(append(run[1:len(run):len(run)], filepath.Join(samples, file)), args...)...)
	cmd.Env = append(os.Environ(), environ...)
	return cmd
}

// startBroker runs a broker in memory until the end of the test, with an API key, tokens and a
// namespace with grants.
func startBroker(t *testing.T) broker.Addrs {
	t.Helper()
	keys, err := auth.NewKeys([]string{"plain:" + apiKey})
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := auth.NewTokens(auth.Options{HS256: [][]byte{[]byte(tokenSecret)}})
	if err != nil {
		t.Fatal(err)
	}
	grant, err := namespace.ParseAccess("grant")
	if err != nil {
		t.Fatal(err)
	}
	namespaces, err := namespace.New([]namespace.Rule{{Name: "chat:*", Subscribe: grant, Publish: grant}, {Name: "news"}})
	if err != nil {
		t.Fatal(err)
	}
	b := kittest.NewMemory().Start(t, func(o *broker.Options) {
		o.Access = broker.AccessOptions{Keys: keys, Tokens: tokens, Namespaces: namespaces}
	})
	return b.Addrs
}

// A flaky proxy loses the first answer of the broker, and refuses the second call.
func flakyProxy(t *testing.T, target string) (proxy string, calls *atomic.Int64) {
	t.Helper()
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	calls = new(atomic.Int64)
	forward := httputil.NewSingleHostReverseProxy(to)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch calls.Add(1) {
		case 1:
			forward.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		case 2:
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"error":{"code":"unavailable","message":"the test"}}`)
		default:
			forward.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() { s.Close(); http.DefaultTransport.(*http.Transport).CloseIdleConnections() })
	return s.URL, calls
}

// TestPush: a program pushes once although the first answer is lost and the second call is refused.
// A push with a wrong key is made once, and fails.
func TestPush(t *testing.T) {
	target := startBroker(t).HTTP
	eachLanguage(t, func(t *testing.T, l language) {
		proxy, calls := flakyProxy(t, "http://"+target)
		channel, data := "chat:"+l.name, `{"text":"ü \"quoted\"","list":[],"map":{},"n":1.5}`
		push := func(key string) (string, error) {
			out, err := program(t, l.run, l.push, []string{"channel", channel, data}, "SWITCHBOARD_URL="+proxy, "SWITCHBOARD_KEY="+key).CombinedOutput()
			return string(out), err
		}
		out, err := push(apiKey)
		if err != nil || calls.Load() != 3 || !strings.Contains(out, `"duplicate":true`) && !strings.Contains(out, `"duplicate": true`) {
			t.Errorf("%d calls, %v: %s", calls.Load(), err, out)
		}
		if stored := history(t, target, channel); len(stored) != 1 || !sameJSON(t, stored[0], data) {
			t.Errorf("the channel has %s", stored)
		}
		calls.Store(2)
		out, err = push("another-key-of-a-backend")
		if err == nil || calls.Load() != 3 || !strings.Contains(out, "refused: ") || !strings.Contains(out, "unauthorized") {
			t.Errorf("with a wrong key: %d calls, %v: %s", calls.Load()-2, err, out)
		}
	})
}

// history returns the data of the messages of a channel.
func history(t *testing.T, target, channel string) (data []string) {
	t.Helper()
	var answer struct {
		Messages []struct{ Data json.RawMessage }
	}
	if err := (testbed.API{HTTP: target, Key: apiKey}).Call(t.Context(), http.MethodGet, "/v1/channels/"+channel+"/history", nil, &answer); err != nil {
		t.Fatal(err)
	}
	for _, m := range answer.Messages {
		data = append(data, string(m.Data))
	}
	return data
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		t.Fatalf("%s or %s is not JSON", a, b)
	}
	return fmt.Sprint(x) == fmt.Sprint(y)
}

// TestIssueToken: a client connects with the token of a program, as its user and with its grants.
func TestIssueToken(t *testing.T) {
	address := startBroker(t).TCP
	eachLanguage(t, func(t *testing.T, l language) {
		user := `jürgen\"/` + l.name
		out, err := program(t, l.run, l.issueToken, []string{user}, "SWITCHBOARD_AUTH_HS256_SECRET="+tokenSecret).Output()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		c, err := textconn.DialTCP(ctx, newDialer(), address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		quoted, _ := json.Marshal(user)
		for _, step := range []struct{ send, want string }{
			{`{"type":"connect","client":"phone","token":"` + strings.TrimSpace(string(out)) + `"}`, `"user":` + string(quoted)},
			{`{"type":"subscribe","channel":"chat:42"}`, `"subscribed"`},
			{`{"type":"publish","channel":"chat:43","data":1}`, `"forbidden"`},
		} {
			if err := c.Send(ctx, step.send); err != nil {
				t.Fatal(err)
			}
			if got, err := c.Receive(ctx); err != nil || !strings.Contains(string(got), step.want) {
				t.Errorf("%s: %s, %v; want %s", step.send, got, err, step.want)
			}
		}
	})
}
