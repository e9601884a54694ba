package fastpush

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestManyCalls checks that fastpush answers all pushes of a connection but the first of each
// round, and that net/http answers the other requests between them.
func TestManyCalls(t *testing.T) {
	s := start(t, nil)
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}, Timeout: testTimeout}
	defer client.CloseIdleConnections()
	call := func(method, path, body, want string) {
		t.Helper()
		r, err := http.NewRequest(method, "http://"+s.addr+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+body[:min(3, len(body))])
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if got, err := io.ReadAll(resp.Body); err != nil || string(got) != want {
			t.Fatalf("%s %s: %.100q, %v; want %.100q", method, path, got, err, want)
		}
	}
	for round := range 5 {
		for _, path := range []string{"/v1/push", "/v1/push/batch"} {
			for _, body := range []string{"one", "two", fmt.Sprint(round), strings.Repeat("large", 100<<10)} {
				call("POST", path, body, fmt.Sprintf("%s \"Bearer %s\" %s\n", path, body[:min(3, len(body))], body))
			}
		}
		call("GET", "/v1/other", "", "GET /v1/other\n")
		call("POST", "/v1/other", "xyz", "POST /v1/other\n")
	}
	if got := s.fastPushes.Load(); got != 5*7 {
		t.Errorf("%d of %d pushes were answered by fastpush, want all but the first of each round", got, s.pushes.Load())
	}
}

// TestAsNetHTTP checks that requests after a push get the same answers as from net/http alone.
func TestAsNetHTTP(t *testing.T) {
	fast := start(t, nil)
	plain := start(t, func(_ *testServer, o *Options) { o.Paths = nil }) // takes no connection over
	rest := []string{
		request("two") + request("three"),
		request("two") + "GET /x HTTP/1.1\r\nHost: here\r\n\r\n" + request("three"),
		request("two") + "\r\n\r\n" + request("three"),
		request("two") + "\r\nGET /x HTTP/1.1\r\nHost: here\r\n\r\n",
		request("unavailable") + request("three"),
		request(""),
		request(strings.Repeat("x", 1<<20)) + request("three"),
		request(strings.Repeat("x", 1<<20+1)),
		"POST /v1/push HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n" + request("three"),
		"POST /v1/push HTTP/1.1\r\nHost: here\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nab",
		"POST /v1/push HTTP/1.1\r\nHost: here\r\nConnection: close\r\nContent-Length: 2\r\n\r\nab" + request("three"),
		"POST /v1/push HTTP/1.0\r\nHost: here\r\nContent-Length: 2\r\n\r\nab" + request("three"),
		"GET /x HTTP/1.1\r\nHost: here\r\n\r\n" + strings.Repeat(request("pipelined"), 300),
		"GET /x HTTP/1.1\r\nHost: here\r\nX: " + strings.Repeat("x", 9<<10) + "\r\n\r\n" + request("three"),
	}
	for _, row := range headCases {
		if strings.HasSuffix(row.text, "\r\n\r\n") {
			rest = append(rest, row.text+"ab"+request("three"))
		}
	}
	for _, text := range rest {
		got, want := fast.conversation(t, text), plain.conversation(t, text)
		if got != want {
			t.Errorf("after a push, %.200q:\n%.2000s\nwith net/http alone:\n%.2000s", text, got, want)
		}
	}
	if plain.fastPushes.Load() != 0 || fast.fastPushes.Load() == 0 {
		t.Errorf("answered by fastpush: %d and %d", fast.fastPushes.Load(), plain.fastPushes.Load())
	}
}

// conversation sends a push and then text, and returns all answers.
func (s *testServer) conversation(t *testing.T, text string) string {
	t.Helper()
	c := s.dialTakenOver(t)
	go func() { // the server may close before it has read everything
		_, _ = io.WriteString(c, text)
		_ = c.Conn.(interface{ CloseWrite() error }).CloseWrite()
	}()
	var b strings.Builder
	for {
		r, body, err := c.answer()
		if err != nil {
			return b.String()
		}
		if r.Header.Get("Date") == "" && r.StatusCode < 400 && r.StatusCode > 199 {
			t.Errorf("no date after %.100q", text)
		}
		r.Header.Del("Date")
		fmt.Fprintf(&b, "%s %s close: %v length: %d %v\n%.300s\n", r.Proto, r.Status, r.Close, r.ContentLength, r.Header, body)
	}
}

// TestPipelined checks that pipelined requests are answered in order, however the writes split
// them.
func TestPipelined(t *testing.T) {
	s := start(t, nil)
	c := s.dialTakenOver(t)
	const n = 500
	var all bytes.Buffer
	for i := range n {
		all.WriteString(request(fmt.Sprint("number ", i)))
		if i%100 == 50 {
			fmt.Fprintf(&all, "GET /between/%d HTTP/1.1\r\nHost: here\r\n\r\n", i)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for size := 1; all.Len() > 0; size = size%700 + 13 {
			_, _ = c.Write(all.Next(size))
		}
	}()
	for i := range n {
		c.expect(fmt.Sprint("number ", i, "\n"))
		if i%100 == 50 {
			c.expect(fmt.Sprint("GET /between/", i, "\n"))
		}
	}
	<-done
	if got := s.fastPushes.Load(); got != n-n/100 {
		t.Errorf("%d of %d were answered by fastpush", got, n)
	}
}

// TestByteByByte checks that a request may arrive in single bytes.
func TestByteByByte(t *testing.T) {
	s := start(t, nil)
	c := s.dialTakenOver(t)
	for range 2 {
		for _, char := range request("slowly") {
			c.send(string(char))
		}
		c.expect("slowly")
	}
	if s.fastPushes.Load() != 2 {
		t.Errorf("%d were answered by fastpush", s.fastPushes.Load())
	}
}

// TestAnotherHost checks that a request to another Host goes back to net/http. The handler there
// decides whether the Host is allowed.
func TestAnotherHost(t *testing.T) {
	s := start(t, nil)
	c := s.dialTakenOver(t)
	another := strings.Replace(request("another"), "here", "there", 1)
	for _, text := range []string{request("the same"), another, another, request("back")} {
		c.send(text)
		c.expect("")
	}
	if got := s.fastPushes.Load(); got != 2 { // a push to the Host of the push before it: the first and third
		t.Errorf("%d were answered by fastpush, want 2", got)
	}
}

// TestBareLF checks that net/http answers a head that ends in LF alone. The client waits for the
// answer before it sends anything else.
func TestBareLF(t *testing.T) {
	s := start(t, nil)
	for _, head := range []string{
		"POST /v1/push HTTP/1.1\nHost: here\nContent-Length: 2\n\n",
		"POST /v1/push HTTP/1.1\r\nHost: here\r\nContent-Length: 2\r\n\n",
		"POST /v1/push HTTP/1.1\r\nHost: here\r\nContent-Length: 2\n\r\n",
	} {
		c := s.dialTakenOver(t)
		c.send(head + "ab")
		c.expect("ab")
	}
}

// TestTooSlow checks that a connection with a partial request, or none, is closed after its
// timeout.
func TestTooSlow(t *testing.T) {
	whole := request("a body")
	for name, row := range map[string]struct {
		text  string
		limit func(*Options) *time.Duration
	}{
		"idle":      {"", func(o *Options) *time.Duration { return &o.Idle }},
		"half head": {whole[:30], func(o *Options) *time.Duration { return &o.ReadHead }},
		"half body": {whole[:len(whole)-3], func(o *Options) *time.Duration { return &o.Read }},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, func(_ *testServer, o *Options) { *row.limit(o) = time.Millisecond })
			c := s.dialTakenOver(t)
			if row.text != "" {
				c.send(row.text)
			}
			c.expectClosed()
			s.waitTakenOver(t, 0)
		})
	}
}

// TestNotTakenOver checks that the connection stays with net/http after requests of other forms.
func TestNotTakenOver(t *testing.T) {
	s := start(t, nil)
	for name, head := range map[string]string{
		"another path":   "POST /v1/other HTTP/1.1\r\nHost: here\r\n",
		"a query":        "POST /v1/push?a=b HTTP/1.1\r\nHost: here\r\n",
		"browser":        "POST /v1/push HTTP/1.1\r\nHost: here\r\nSec-Fetch-Site: same-origin\r\n",
		"web page":       "POST /v1/push HTTP/1.1\r\nHost: here\r\nOrigin: http://here\r\n",
		"odd connection": "POST /v1/push HTTP/1.1\r\nHost: here\r\nConnection: keep-alive, x\r\n",
	} {
		c := s.dial(t)
		for range 2 {
			c.send(head + "Content-Length: 2\r\n\r\nab")
			if r := c.expect(""); r.StatusCode != http.StatusOK {
				t.Errorf("%s: %s", name, r.Status)
			}
		}
	}
	if s.fastPushes.Load() != 0 {
		t.Errorf("%d were answered by fastpush", s.fastPushes.Load())
	}
}

// TestPanic checks that a panic in a call closes its connection, and no other.
func TestPanic(t *testing.T) {
	s := start(t, nil)
	c, other := s.dialTakenOver(t), s.dialTakenOver(t)
	s.onPush = func() { panic("on purpose") }
	c.send(request("bad"))
	c.expectClosed()
	s.waitTakenOver(t, 1)
	s.onPush = func() {}
	other.send(request("good"))
	other.expect("good")
}

// TestHeaders checks that an answer has the same headers as with net/http.
func TestHeaders(t *testing.T) {
	s := start(t, nil)
	c := s.dialTakenOver(t)
	c.send(request("unavailable"))
	r := c.expect("unavailable")
	if _, err := http.ParseTime(r.Header.Get("Date")); err != nil {
		t.Error(err)
	}
	r.Header.Del("Date")
	want := http.Header{"Content-Type": {"application/json"}, "Retry-After": {"1"}, "Content-Length": {fmt.Sprint(r.ContentLength)}}
	if r.Status != "503 Service Unavailable" || !maps.EqualFunc(r.Header, want, func(a, b []string) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) {
		t.Errorf("%s %v", r.Status, r.Header)
	}
}

func TestCurl(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Logf("no curl here: %v", err)
		return
	}
	s := start(t, nil)
	url := "http://" + s.addr + "/v1/push"
	out, err := exec.CommandContext(testContext(t), curl, "-s", url, "-d", "one", "--next", "-s", url, "-d", "two", "--next", "-s", url+"/x", "--next", "-s", url, "-d", "three").CombinedOutput()
	if want := "/v1/push \"\" one\n/v1/push \"\" two\nGET /v1/push/x\n/v1/push \"\" three\n"; err != nil || string(out) != want {
		t.Errorf("%s, %v; want %s", out, err, want)
	}
	if s.fastPushes.Load() != 1 {
		t.Errorf("%d were answered by fastpush", s.fastPushes.Load())
	}
}
