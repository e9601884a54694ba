package broker_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"switchboard/broker"
	"switchboard/broker/hook"
	"switchboard/broker/namespace"
	"switchboard/internal/signedreq"
	"switchboard/queue"
)

// TestRequestsToURL checks that a broker in memory sends the requests of clients to the backend,
// and what a client receives for each kind of answer.
func TestRequestsToURL(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			User  string
			Query string
		}
		if err := signedreq.Decode(r, "shared with the backend", &request); err != nil {
			t.Error(err)
		}
		switch request.Query {
		case "refuse":
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"error":{"code":"forbidden","message":"not you"}}`)
		case "fail":
			w.WriteHeader(http.StatusInternalServerError)
		case "hang":
			<-r.Context().Done()
		default:
			fmt.Fprintf(w, `{"for": %q}`, request.User)
		}
	}))
	t.Cleanup(backend.Close)
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) {
		o.Requests.From = namespace.Users
		o.Requests.Backend = hook.RequestOptions{URL: backend.URL, Secrets: []string{"shared with the backend"}, Timeout: 500 * time.Millisecond}
	})
	overAllTransports(t, func(t *testing.T, dial func(instance) *testClient) {
		p := dial(i)
		p.send(`{"type":"connect","client":"phone","user":"alice","ref":1}`)
		p.expect(object{"type": "connected"})
		for query, want := range map[string]object{
			"hello":  {"type": "reply", "data": object{"for": "alice"}},
			"refuse": {"type": "error", "code": "forbidden", "message": "not you"},
			"fail":   {"type": "error", "code": "unavailable"},
			"hang":   {"type": "error", "code": "timeout"},
		} {
			p.send(`{"type":"request","ref":2,"data":%q}`, query)
			p.expect(want)
		}
		p.close()
	})
}
