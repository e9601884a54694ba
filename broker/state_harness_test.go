package broker_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"switchboard/broker"
	"switchboard/queue"
)

// forEachStateStore runs the test with each store of states, each with and without fast push.
func forEachStateStore(t *testing.T, change func(*broker.Options), test func(*testing.T, *stateCaller)) {
	t.Helper()
	stores := map[string]func(*testing.T) store{
		"memory": func(*testing.T) store { return memoryStore(queue.Options{}) },
		"redis": func(t *testing.T) store {
			s, _ := redisStore(t, shared.Client(t), testBeat)
			return s
		},
	}
	for name, newStore := range stores {
		for _, noFastPush := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/fast push %v", name, !noFastPush), func(t *testing.T) {
				i := start(t, newStore(t), func(o *broker.Options) {
					o.Runtime.NoFastPush = noFastPush
					if change != nil {
						change(o)
					}
				})
				test(t, newStateCaller(t, i))
			})
		}
	}
}

// stateCaller is a backend that writes and reads states. It names the ids of messages in the order
// in which it sees them: #1, #2 and so on. Times are #time.
type stateCaller struct {
	*caller
	ids []string
}

func newStateCaller(t *testing.T, i instance) *stateCaller { return &stateCaller{caller: i.caller(t)} }

var (
	namePattern = regexp.MustCompile(`#(\d+)`)
	idPattern   = regexp.MustCompile(`\b\d{15,}\b`)
	timePattern = regexp.MustCompile(`\b\d{13}\b`)
)

// call replaces the names of ids in the call, and ids in the answer.
func (c *stateCaller) call(call string) (status int, answer string) {
	c.t.Helper()
	call = namePattern.ReplaceAllStringFunc(call, func(name string) string {
		var n int
		if _, err := fmt.Sscanf(name, "#%d", &n); err != nil || n > len(c.ids) {
			c.t.Fatalf("%s: %s is not known", call, name)
		}
		return c.ids[n-1]
	})
	method, path, body := "POST", "/v1/push", call
	if rest, ok := strings.CutPrefix(call, "GET "); ok {
		method, path, body = "GET", rest, ""
	} else if !strings.HasPrefix(call, "{") {
		path, body, _ = strings.Cut(strings.TrimPrefix(call, "POST "), " ")
	}
	r, text, err := c.caller.call(method, path, "", body)
	if err != nil {
		c.t.Fatalf("%s: %v", call, err)
	}
	text = idPattern.ReplaceAllStringFunc(strings.TrimSpace(text), c.name)
	return r.StatusCode, timePattern.ReplaceAllString(text, "#time")
}

// name returns the name of an id.
func (c *stateCaller) name(id string) string {
	for i, known := range c.ids {
		if known == id {
			return fmt.Sprintf("#%d", i+1)
		}
	}
	c.ids = append(c.ids, id)
	return fmt.Sprintf("#%d", len(c.ids))
}

// run makes the calls, one after the other, and checks the status and the answer. #_ is any id: ids
// of different channels may be equal.
func (c *stateCaller) run(steps [][2]string) {
	c.t.Helper()
	for _, step := range steps {
		status, answer := c.call(step[0])
		want := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(step[1]), "#_", `#\d+`) + "$")
		if got := fmt.Sprintf("%d %s", status, answer); !want.MatchString(got) {
			c.t.Fatalf("%s\ngot  %s\nwant %s", step[0], got, step[1])
		}
	}
}
