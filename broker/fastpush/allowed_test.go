package fastpush

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// allowedHeaders are all headers that this package accepts. To add one, add it here and to
// ignorable, after checking that no handler reads it.
var allowedHeaders = map[string]string{
	"Host": "here", "Content-Length": "2", "Authorization": "Bearer key", "Connection": "keep-alive",
	"Content-Type": "application/json", "User-Agent": "x/1", "Accept": "*/*", "Accept-Encoding": "gzip",
	"Accept-Language": "de", "Accept-Charset": "utf-8", "Traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
}

// otherHeaders are the other names of the registry of HTTP fields (RFC 9110 §18.4), and common
// unregistered ones. a, u, c and t are the letters that ignorable distinguishes.
const otherHeaders = `A-IM Accept-CH Accept-Datetime Accept-Features Accept-Patch Accept-Post Accept-Ranges Acceptx
Access-Control-Request-Headers Access-Control-Request-Method Age Allow ALPN Alt-Used Authentication-Info Baggage
Cache-Control CDN-Loop Close Content-Disposition Content-Encoding Content-Language Content-Lengthx Content-Location
Content-MD5 Content-Range Cookie Cookie2 Date Depth Destination DNT DPoP Early-Data ETag Expect Expect-CT Expires
Forwarded From Hosts HTTP2-Settings Idempotency-Key If If-Match If-Modified-Since If-None-Match If-Range
If-Unmodified-Since Keep-Alive Last-Modified Link Location Max-Forwards MIME-Version Negotiate Origin Pragma Prefer
Priority Proxy-Authorization Proxy-Connection Range Referer Sec-Fetch-Dest Sec-Fetch-Mode Sec-Fetch-Site
Sec-WebSocket-Key Sec-WebSocket-Version Signature Signature-Input Switchboard-Anything TE Tracestate Trailer
Transfer-Encoding Upgrade Upgrade-Insecure-Requests Via Warning X X-B3-TraceId X-Forwarded-For X-Forwarded-Host
X-Forwarded-Proto X-HTTP-Method-Override X-Real-IP X-Request-ID X-Requested-With a u c t`

// TestOnlyAllowedHeaders checks that parseHead leaves a request with any other header to net/http,
// and that TakeOver leaves its connection there.
func TestOnlyAllowedHeaders(t *testing.T) {
	s := New(Options{Paths: paths})
	accepted := func(name, value string) (parsed, takenOver bool) {
		text := "POST /v1/push HTTP/1.1\r\n"
		header := http.Header{}
		for required, usual := range map[string]string{"Host": "here", "Content-Length": "2"} {
			if !strings.EqualFold(name, required) {
				text += required + ": " + usual + "\r\n"
			}
		}
		text += name + ": " + value + "\r\n\r\n"
		if !strings.EqualFold(name, "Host") { // net/http removes Host from the headers
			header.Set(name, value)
		}
		_, f := parseHead([]byte(text), paths)
		compareWithNetHTTP(t, []byte(text))
		return f == simple, s.isSimple(&http.Request{Method: "POST", ProtoMajor: 1, ProtoMinor: 1, RequestURI: "/v1/push", Header: header})
	}
	for name, value := range allowedHeaders {
		for _, name := range []string{name, strings.ToLower(name)} {
			if parsed, takenOver := accepted(name, value); !parsed || !takenOver {
				t.Errorf("%s: read by fastpush: %v, connection taken over: %v", name, parsed, takenOver)
			}
		}
	}
	for name := range strings.FieldsSeq(otherHeaders) {
		if parsed, takenOver := accepted(name, "1"); parsed || takenOver {
			t.Errorf("%s: read by fastpush: %v, connection taken over: %v", name, parsed, takenOver)
		}
	}
}

// TestOtherHeaderIsAnswered checks that net/http answers a request with another header.
func TestOtherHeaderIsAnswered(t *testing.T) {
	s := start(t, nil)
	for name := range strings.FieldsSeq("Cookie Via X-Forwarded-For X-Request-ID Idempotency-Key Content-Encoding Baggage") {
		c := s.dialTakenOver(t)
		before := s.fastPushes.Load()
		c.send(fmt.Sprintf("POST /v1/push HTTP/1.1\r\nHost: here\r\n%s: x\r\nContent-Length: 2\r\n\r\nab", name))
		c.expect("ab")
		if s.fastPushes.Load() != before {
			t.Errorf("%s is ignored", name)
		}
	}
}

// TestAnswersNotRead checks that the connection of a client that reads no answers is closed.
func TestAnswersNotRead(t *testing.T) {
	s := start(t, func(_ *testServer, o *Options) { o.Write = time.Millisecond })
	c := s.dialTakenOver(t)
	text := request(strings.Repeat("x", 1<<20))
	for { // until the answers fill the buffers of both ends
		if _, err := io.WriteString(c, text); err != nil {
			break
		}
	}
	s.waitTakenOver(t, 0)
	_ = c.SetDeadline(time.Now().Add(testTimeout))
	if _, err := io.Copy(io.Discard, c.r); err != nil && isTimeout(err) {
		t.Error("the connection is still open")
	}
}

// TestWriteDeadlineIsRenewed checks that the write deadline of one answer does not affect the next.
func TestWriteDeadlineIsRenewed(t *testing.T) {
	s := start(t, nil)
	c := s.dialTakenOver(t)
	for n := range 5 {
		s.mu.Lock()
		for taken := range s.conns {
			taken.writeSet = time.Time{} // as if the deadline of the last answer had passed
			_ = taken.SetWriteDeadline(time.Now().Add(-time.Second))
		}
		s.mu.Unlock()
		c.send(request(fmt.Sprint("answer ", n)))
		c.expect(fmt.Sprint("answer ", n))
	}
}

// TestHandBackClearsDeadlines checks that a connection goes back to net/http without deadlines.
func TestHandBackClearsDeadlines(t *testing.T) {
	s := start(t, nil)
	c := s.dialTakenOver(t)
	s.mu.Lock()
	for taken := range s.conns {
		_ = taken.SetWriteDeadline(time.Now().Add(-time.Second))
	}
	s.mu.Unlock()
	c.send("GET /back HTTP/1.1\r\nHost: here\r\n\r\n")
	c.expect("GET /back")
}
