package broker_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"switchboard/broker"
	"switchboard/internal/await"
	"switchboard/internal/certfile"
	"switchboard/internal/certtest"
	"switchboard/internal/ssetest"
	"switchboard/queue"
)

// TestSSEResumes: after a reconnect with the last id, each channel, $all and the client queue go
// on where they were, and the client queue is acknowledged up to there.
func TestSSEResumes(t *testing.T) {
	for name, change := range sseServers {
		t.Run(name, func(t *testing.T) {
			i := start(t, memoryStore(queue.Options{}), change)
			query := "channel=news&channel=room/1&user=alice&client=phone"
			s := openStream(t, i, query, "")
			s.expect("connected", object{"client": "alice/phone", "user": "alice", "queued": 0})
			s.expect("subscribed", object{"channel": "news"})
			s.expect("subscribed", object{"channel": "room/1"})
			i.push(t, `{"channel":"news","data":1}`)
			s.expect("message", object{"channel": "news", "data": 1})
			i.push(t, `{"client":"alice/phone","data":2}`)
			s.expect("message", object{"channel": nil, "data": 2})
			i.push(t, `{"all":true,"data":3}`)
			s.expect("message", object{"channel": "$all", "data": 3})
			s.close()
			i.push(t, `{"channel":"room/1","data":4}`)
			i.push(t, `{"client":"alice/phone","data":5}`)
			i.push(t, `{"all":true,"data":6}`)
			i.push(t, `{"channel":"news","data":7}`)
			last := s.last
			s = openStream(t, i, query, last)
			s.expect("connected", object{"client": "alice/phone"})
			got := map[string]bool{}
			for range 6 { // two answers and four messages; there is no order between queues
				e, err := s.next()
				if err != nil {
					t.Fatal(err)
				}
				o := decode(t, []byte(e.Data))
				got[fmt.Sprint(o["type"], " ", o["channel"], " ", o["recovered"], " ", o["data"])] = true
			}
			for _, want := range []string{
				"subscribed news true <nil>", "subscribed room/1 true <nil>", "message room/1 <nil> 4",
				"message <nil> <nil> 5", "message $all <nil> 6", "message news <nil> 7",
			} {
				if !got[want] {
					t.Errorf("%s is missing in %v", want, got)
				}
			}
			await.True(t, "the first message is acknowledged", func() bool { return i.queued(t, "alice") == "1" })
			s.close()
			s = openStream(t, i, query, last) // an older id does not take acknowledgements back
			s.expect("connected", object{"queued": 1})
		})
	}
}

// queued returns how many messages wait for the user's client.
func (i instance) queued(t *testing.T, user string) string {
	t.Helper()
	_, u := i.call(t, "GET", "/v1/users/"+user, "")
	clients, _ := u["clients"].([]any)
	if len(clients) == 0 {
		return "no client"
	}
	return fmt.Sprint(clients[0].(object)["queued"])
}

// TestSSEManyChannels: a stream resumes the maximum number of channels of a connection.
func TestSSEManyChannels(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), nil)
	var query []string
	for n := range 128 {
		query = append(query, fmt.Sprint("channel=c", n))
	}
	s := openStream(t, i, strings.Join(query, "&"), "")
	s.expect("connected", nil)
	for range 128 {
		s.expect("subscribed", nil)
	}
	for round := range 2 {
		i.push(t, fmt.Sprintf(`{"channel":"c127","data":%d}`, round))
		s.expect("message", object{"channel": "c127", "data": round})
		s.close()
		s = openStream(t, i, strings.Join(query, "&"), s.last)
		s.expect("connected", nil)
		for range 128 {
			s.expect("subscribed", object{"recovered": true})
		}
	}
}

// TestSSEAnonymous: a client without a user keeps its queue, without storing anything but the
// last id.
func TestSSEAnonymous(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), nil)
	s := openStream(t, i, "", "")
	first := s.expect("connected", nil)
	s.close()
	i.push(t, fmt.Sprintf(`{"client":%q,"data":1}`, first["client"]))
	for range 2 {
		s = openStream(t, i, "", s.last)
		s.expect("connected", object{"client": first["client"], "secret": first["secret"]})
		e, err := s.next()
		if err != nil || !strings.Contains(e.Data, `"data":1`) {
			t.Fatalf("event %+v, %v", e, err)
		}
		s.close()
		i.push(t, fmt.Sprintf(`{"client":%q,"data":1}`, first["client"]))
	}
}

// TestSSEAccess: tokens and namespaces apply, and refusals have statuses that end EventSource.
func TestSSEAccess(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), withAccessRules(t))
	token := signed(t, jwt.MapClaims{"sub": "alice"})
	s := openStream(t, i, "channel=inbox:alice&channel=inbox:bob&client=phone&token="+token, "")
	s.expect("connected", object{"user": "alice"})
	s.expect("subscribed", object{"channel": "inbox:alice"})
	s.expect("refused", object{"type": "error", "code": "forbidden", "channel": "inbox:bob", "ref": nil})
	bearer := http.Header{"Authorization": {"Bearer " + token}}
	if resp, _ := i.requestSSE(t, "GET", "client=tablet", "", bearer); resp.StatusCode != http.StatusOK {
		t.Errorf("with a header: %s", resp.Status)
	}
	expired := signed(t, jwt.MapClaims{"sub": "alice", "exp": time.Now().Add(-time.Hour).Unix()})
	fixed := signed(t, jwt.MapClaims{"sub": "alice", "client": "watch"})
	for query, want := range map[string]int{
		"":                               http.StatusUnauthorized,
		"token=x":                        http.StatusUnauthorized,
		"token=" + expired:               http.StatusUnauthorized,
		"client=phone&token=" + fixed:    http.StatusForbidden,
		"client=a/b&token=" + token:      http.StatusBadRequest,
		"channel=%7B&token=" + token:     http.StatusBadRequest,
		"last_event_id=?&token=" + token: http.StatusBadRequest,
	} {
		resp, body := i.requestSSE(t, "GET", query, "", nil)
		if resp.StatusCode != want || !strings.HasPrefix(body, `{"error":{"code":"`) || resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%.40s: %s %s, want %d", query, resp.Status, body, want)
		}
	}
}

// TestSSESuperseded: EventSource reconnects after every end of a stream. A superseded client may do
// so twice. Then the last event has an id that makes the broker answer 204, which ends EventSource.
func TestSSESuperseded(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), nil)
	query := "user=alice&client=phone"
	first := openStream(t, i, query, "")
	first.expect("connected", nil)
	second := openStream(t, i, query, "")
	second.expect("connected", nil)
	for range 2 {
		first.expectEnd("superseded", true)
		first = openStream(t, i, query, first.last)
		first.expect("connected", nil)
		second.expectEnd("superseded", true)
		second = openStream(t, i, query, second.last)
		second.expect("connected", nil)
	}
	first.expectEnd("superseded", false)
	if resp, _ := i.requestSSE(t, "GET", query, first.last, nil); resp.StatusCode != http.StatusNoContent {
		t.Errorf("a reconnect of the superseded client: %s, want 204", resp.Status)
	}
	status, _ := i.call(t, "POST", "/v1/users/alice/disconnect", "{}")
	if status != http.StatusOK {
		t.Fatal(status)
	}
	second.expectEnd("disconnected", false)
}

// TestSSEDrain: a server that shuts down asks its clients to reconnect after a random delay.
func TestSSEDrain(t *testing.T) {
	for name, change := range sseServers {
		t.Run(name, func(t *testing.T) {
			i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) {
				if change != nil {
					change(o)
				}
				o.Timing.Drain = 2 * time.Second
			})
			s := openStream(t, i, "user=alice&client=phone&channel=a", "")
			s.expect("connected", nil)
			s.expect("subscribed", nil)
			stopped := make(chan error, 1)
			go func() { stopped <- i.stop() }()
			if retry := s.expectEnd("draining", true); retry < 1 || retry > 2000 {
				t.Errorf("retry: %d", retry)
			}
			if err := <-stopped; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSSEOrigins: pages of the configured origins may open streams and acknowledge, and no others.
func TestSSEOrigins(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) {
		o.Access.Origins.Patterns = []string{"https://app.example"}
	})
	s := openStream(t, i, "user=alice&client=phone", "")
	s.expect("connected", nil)
	i.push(t, `{"client":"alice/phone","data":1}`)
	s.expect("message", nil)
	for origin, allowed := range map[string]bool{"https://app.example": true, "https://evil.example": false, "null": false} {
		for _, method := range []string{"GET", "POST", "OPTIONS"} {
			resp, body := i.requestSSE(t, method, "user=alice&client=phone", s.last, http.Header{"Origin": {origin}})
			got := resp.Header.Get("Access-Control-Allow-Origin")
			if resp.Header.Get("Vary") != "Origin" {
				t.Errorf("%s from %s: Vary %q", method, origin, resp.Header.Get("Vary"))
			}
			if allowed && (got != origin || resp.StatusCode/100 != 2) || !allowed && (got != "" || resp.StatusCode != http.StatusForbidden) {
				t.Errorf("%s from %s: %s %s, allowed %q", method, origin, resp.Status, body, got)
			}
			if allow := resp.Header.Get("Access-Control-Allow-Headers"); method == "OPTIONS" && allowed && !strings.Contains(allow, "Last-Event-ID") {
				t.Errorf("a page may send %q", allow)
			}
		}
	}
	if resp, _ := i.requestSSE(t, "DELETE", "", "", nil); resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("DELETE: %s", resp.Status)
	}
}

// TestSSEComments: an idle stream gets comments, and is not closed for the client's silence.
func TestSSEComments(t *testing.T) {
	t.Parallel()
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) { o.Timing.Ping = time.Second })
	s := openStream(t, i, "user=alice&client=phone", "")
	s.expect("connected", object{"ping": 1})
	for n := range 3 {
		if e, err := s.r.Next(); err != nil || !e.Comment || e.Raw != ":\n\n" {
			t.Fatalf("%d: %+v, %v", n, e, err)
		}
	}
}

// TestSSEOverHTTP2: browsers keep all streams of a page on one connection.
func TestSSEOverHTTP2(t *testing.T) {
	t.Parallel()
	ca := certtest.New(t)
	pair := ca.Pair()
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) {
		o.Listen.TLS = files(t, certfile.Options{Cert: pair.Cert, Key: pair.Key})
		o.Timing.Drain = time.Second
	})
	for _, http2 := range []bool{true, false} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca.Pool()}, ForceAttemptHTTP2: http2}
		defer transport.CloseIdleConnections()
		client := &http.Client{Transport: transport}
		var streams []*stream
		for n := range 3 {
			s := openStreamOver(t, client, sseRequest(t, "GET", "https://"+i.HTTP, fmt.Sprintf("channel=news&user=alice&client=tab-%d-%t", n, http2), "", ""))
			if got := s.resp.ProtoMajor == 2; got != http2 {
				t.Fatalf("the protocol is %s", s.resp.Proto)
			}
			s.expect("connected", nil)
			s.expect("subscribed", nil)
			streams = append(streams, s)
		}
		resp, err := client.Post("https://"+i.HTTP+"/v1/push", "application/json", strings.NewReader(`{"channel":"news","data":1}`))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		for _, s := range streams {
			s.expect("message", object{"data": 1})
		}
		if http2 {
			for _, s := range streams {
				s.close()
			}
			continue
		}
		stopped := make(chan error, 1)
		go func() { stopped <- i.stop() }()
		for _, s := range streams {
			s.expectEnd("draining", true)
		}
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	}
}

// TestSSEByCurl reads a stream with curl.
func TestSSEByCurl(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Fatalf("%v; run `make install-test-tools`", err)
	}
	i := start(t, memoryStore(queue.Options{}), nil)
	curl := exec.CommandContext(t.Context(), "curl", "-sN", "http://"+i.HTTP+"/sse?channel=news&user=alice&client=phone")
	out, err := curl.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := curl.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = curl.Process.Kill(); _ = curl.Wait() }()
	r := ssetest.NewReader(out, "")
	for _, want := range []string{"connected", "subscribed", "message"} {
		if want == "message" {
			i.push(t, `{"channel":"news","data":1}`)
		}
		if e, err := r.Next(); err != nil || e.Name != want {
			t.Fatalf("%+v, %v, want %s", e, err, want)
		}
	}
}
