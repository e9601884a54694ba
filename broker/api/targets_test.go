package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"switchboard/broker/delivery"
	"switchboard/broker/limit"
	"switchboard/broker/namespace"
)

// countingPusher accepts and counts every push.
type countingPusher struct {
	Pusher
	pushes int
}

func (c *countingPusher) PushBatch(ctx context.Context, pushes []delivery.Push) {
	c.pushes += len(pushes)
	acceptAll{}.PushBatch(ctx, pushes)
}

// newKeylessAPI returns an API that needs no API key.
func newKeylessAPI(p Pusher, change func(*Options)) *API {
	open := namespace.Open()
	o := Options{
		Pusher: p, Namespaces: func() *namespace.Set { return open }, CountPush: func(string, string) {},
		Authorize:  func(string, string) (*limit.SharedBucket, error) { return nil, nil },
		MaxMessage: 1 << 16, CallLimits: CallLimits{Batch: 1000, Targets: 10_000},
	}
	if change != nil {
		change(&o)
	}
	return New(o)
}

// batchOf returns a batch of pushes with these numbers of targets; 0 makes a simple push.
func batchOf(targets ...int) []byte {
	var items []string
	for i, n := range targets {
		if n == 0 {
			items = append(items, fmt.Sprintf(`{"channel":"c-%d","data":1}`, i))
			continue
		}
		names := make([]string, n)
		for k := range names {
			names[k] = fmt.Sprintf(`"c-%d-%d"`, i, k)
		}
		items = append(items, `{"channels":[`+strings.Join(names, ",")+`],"data":1}`)
	}
	return []byte(`{"messages":[` + strings.Join(items, ",") + `]}`)
}

// TestTargets checks that Targets limits the targets of all pushes of a call. Above the limit
// nothing is pushed.
func TestTargets(t *testing.T) {
	const limit = 10
	for name, row := range map[string]struct {
		path, body string
		status     int
		wantText   string
		pushed     int
	}{
		"at the limit":          {PathBatch, string(batchOf(4, 0, 5)), 200, `"c-2-4"`, limit},
		"above the limit":       {PathBatch, string(batchOf(4, 0, 6)), 413, "messages[2]: up to here the call has 11 targets, at most 10 are allowed (limits.targets)", 0},
		"simple pushes":         {PathBatch, string(batchOf(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)), 413, "messages[10]: up to here", 0},
		"invalid pushes count":  {PathBatch, `{"messages":[{"channels":["a","b","c","d","e","f"]},{"users":["1","2","3","4","5"]}]}`, 413, "messages[1]: up to here", 0},
		"by encoding/json":      {PathBatch, `{"messages":[1,` + string(batchOf(4, 7)[len(`{"messages":[`):]), 413, "messages[2]: up to here", 0}, // 1 is no push
		"one push":              {PathPush, `{"clients":["1","2","3","4","5","6","7","8","9","10","11"],"data":1}`, 413, "11 targets, at most 10 are allowed", 0},
		"one push at the limit": {PathPush, `{"clients":["1","2","3","4","5","6","7","8","9","10"],"data":1}`, 200, "10", limit},
	} {
		t.Run(name, func(t *testing.T) {
			p := new(countingPusher)
			answer := newKeylessAPI(p, func(o *Options) { o.Targets = limit }).Push(row.path, "", []byte(row.body), nil)
			if answer.Status != row.status || !strings.Contains(string(answer.Body), row.wantText) || p.pushes != row.pushed {
				t.Errorf("%d %.300s, %d pushed; want %d about %q, %d", answer.Status, answer.Body, p.pushes, row.status, row.wantText, row.pushed)
			}
			if row.status == 413 && !strings.Contains(string(answer.Body), `"code":"too_large"`) {
				t.Errorf("%s does not have the code too_large", answer.Body)
			}
		})
	}
}

// TestMillionTargets checks that a call of 1000 × 1000 targets is refused before it allocates much
// memory. Reading all of them took 2 GB.
func TestMillionTargets(t *testing.T) {
	targets := make([]int, 1000)
	for i := range targets {
		targets[i] = 1000
	}
	million := batchOf(targets...)
	h := newKeylessAPI(new(countingPusher), nil)
	var answer Answer
	allocated := allocatedBytes(func() { answer = h.Push(PathBatch, "", million, nil) })
	if answer.Status != http.StatusRequestEntityTooLarge || !strings.Contains(string(answer.Body), "messages[10]: up to here the call has 11000 targets") {
		t.Errorf("%d %.300s", answer.Status, answer.Body)
	}
	if allocated > uint64(len(million))/4 {
		t.Errorf("refusing %[2]d KB allocated %[1]d KB", allocated>>10, len(million)>>10)
	}
	full := batchOf(targets[:10]...)
	answer = h.Push(PathBatch, "", full, nil)
	var results struct{ Results []pushResponse }
	if err := json.Unmarshal(answer.Body, &results); err != nil || answer.Status != http.StatusOK || len(results.Results) != 10 {
		t.Fatalf("at the limit: %d %.300s, %v", answer.Status, answer.Body, err)
	}
	for i, r := range results.Results {
		for k, one := range r.Results {
			if one.Channel != fmt.Sprintf("c-%d-%d", i, k) || one.Error != nil {
				t.Fatalf("result %d of push %d is %+v", k, i, one)
			}
		}
	}
}

// allocatedBytes returns how many bytes f allocates.
func allocatedBytes(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestWrongBodies checks that the error says what is wrong in a body, and where.
func TestWrongBodies(t *testing.T) {
	h := newKeylessAPI(acceptAll{}, nil)
	for _, row := range []struct{ path, body, want string }{
		{PathPush, `{"chanel":"news","data":1}`, `unknown field "chanel"`},
		{PathBatch, `{"mesages":[]}`, `unknown field "mesages"`},
		{PathBatch, `{"messages":[{"channel":"a","data":1},{"channel":"a","data":1},{},{"chanel":"b","data":1}]}`, `messages[3]: unknown field "chanel"`},
		{PathBatch, `{"messages":[{"channel":"a","data":1},{"ttl":"x"}]}`, `messages[1]: ttl: string does not fit, expected a number, at byte 10`},
		{PathPush, ``, `the body is empty, a JSON object is expected`},
		{PathPush, `{"channel":"news","data":1`, `not JSON: it ends early, after byte 26`},
		{PathPush, `{"channel":"news" "data":1}`, `not JSON: byte 19: invalid character`},
		{PathPush, `{"channel":7,"data":1}`, `channel: number does not fit, expected a string, at byte 12`},
		{PathPush, `{"channels":"a","data":1}`, `channels: string does not fit, expected a list`},
		{PathPush, `{"all":1,"data":1}`, `all: number does not fit, expected true or false, at byte 8`},
		{PathPush, `["news"]`, `a JSON object is expected, not array`},
		{PathPush, `{"channel":"news","data":1} {}`, `byte 29: text follows the JSON object`},
		{PathPush, `{"channel":"news","data":1}}`, `byte 28: text follows the JSON object`},
		{PathPush, "{\"channel\":\"news\",\"data\":1}\n]", `byte 29: text follows the JSON object`},
		{PathBatch, `{"messages":[{"channel":"a","data":1}]}}`, `byte 40: text follows the JSON object`},
		{PathBatch, `{"messages":[{"channel":"a","data":}]}`, `not JSON: byte 36: invalid character`},
		{"/v1/users/query", `{"user":["a"]}`, `unknown field "user"`},
		{"/v1/notify", `{"clients":[1]}`, `clients: number does not fit, expected a string`},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", row.path, strings.NewReader(row.body)))
		quoted, _ := json.Marshal(row.want)
		if !strings.Contains(w.Body.String(), string(quoted[1:len(quoted)-1])) || !strings.Contains(w.Body.String(), "bad_request") {
			t.Errorf("%s %s: %d %s, want %s", row.path, row.body, w.Code, w.Body, row.want)
		}
	}
}

// TestWrongCalls checks that an unknown path, method or limit gets an error in JSON.
func TestWrongCalls(t *testing.T) {
	h := newKeylessAPI(acceptAll{}, nil)
	for _, row := range []struct {
		method, path string
		status       int
		allow, want  string
	}{
		{"GET", "/v1/push", 405, "POST", "GET /v1/push: the method must be POST"},
		{"DELETE", "/v1/channels/a", 405, "GET, HEAD", "DELETE /v1/channels/a: the method must be GET, HEAD"},
		{"PUT", "/v1/users/query", 405, "GET, HEAD, POST", "PUT /v1/users/query"},
		{"GET", "/v1/users/a/disconnect", 405, "POST", ""},
		{"POST", "/v1/pushes", 404, "", "there is no POST /v1/pushes"},
		{"GET", "/v1/", 404, "", "there is no GET /v1/"},
		{"GET", "/v1", 404, "", "there is no GET /v1"},
		{"GET", "/v1/channels?limit=0", 400, "", `limit: \"0\" is not a number within 1 and 1000`},
		{"GET", "/v1/channels?limit=1001", 400, "", `limit: \"1001\" is not a number within 1 and 1000`},
		{"GET", "/v1/channels/a/history?limit=0", 400, "", `limit: \"0\" is not a number within 1 and 1000`},
		{"GET", "/v1/channels/a/history?limit=-1", 400, "", "within 1 and 1000"},
		{"GET", "/v1/channels/a/history?limit=1001", 400, "", "within 1 and 1000"},
		{"GET", "/v1/channels/a/presence?limit=-1", 400, "", "within 0 and 1000"},
		{"GET", "/v1/channels/a/presence?limit=1001", 400, "", "within 0 and 1000"},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(row.method, row.path, nil))
		var body struct {
			Error struct{ Code, Message string }
		}
		err := json.Unmarshal(w.Body.Bytes(), &body)
		if err != nil || w.Code != row.status || w.Header().Get("Allow") != row.allow || !strings.Contains(w.Body.String(), row.want) || body.Error.Code == "" {
			t.Errorf("%s %s: %d, Allow %q, %s; want %d, %q, %q", row.method, row.path, w.Code, w.Header().Get("Allow"), w.Body, row.status, row.allow, row.want)
		}
	}
}

// TestManyFields checks that a push with too many fields is refused and releases their memory, and
// that the other pushes of its batch are stored.
func TestManyFields(t *testing.T) {
	many := func(n int) string {
		var set strings.Builder
		for i := range n {
			fmt.Fprintf(&set, `,"f%d":1`, i)
		}
		return `{"channel":"a","set":{` + set.String()[1:] + `}}`
	}
	p := new(countingPusher)
	h := newKeylessAPI(p, func(o *Options) { o.Fields.Operations = 64 })
	for _, row := range []struct{ path, body, want string }{
		{PathPush, many(65), "65 fields are changed, at most 64 are allowed"},
		{PathPush, many(1<<16 + 1), "more than 65536 fields"},
		{PathPush, `{"channel":"a","touch":["` + strings.Repeat(`a","`, 1<<16) + `b"]}`, "more than 65536 names"},
		{PathBatch, `{"messages":[{"channel":"a","data":1},` + many(64) + `,` + many(65) + `]}`, "messages[2]: 65 fields are changed, at most 64 are allowed"},
		{PathBatch, `{"messages":[` + many(1<<16+1) + `]}`, "messages[0]: more than 65536 fields"},
	} {
		answer := h.Push(row.path, "", []byte(row.body), nil)
		if !strings.Contains(string(answer.Body), row.want) || !strings.Contains(string(answer.Body), `"code":"too_large"`) {
			t.Errorf("%s %.60s: %d %.300s, want %s", row.path, row.body, answer.Status, answer.Body, row.want)
		}
	}
	if p.pushes != 2 {
		t.Errorf("%d pushes are stored, want 2", p.pushes)
	}
	m := fullItem([]byte(many(65)))
	if c := (callCounter{targets: 10, operations: 64}); c.add(0, &m) != nil || m.err == nil || m.full.Set != nil {
		t.Errorf("got error %v and %d fields, want an error and no fields", m.err, len(m.full.Set))
	}
}
