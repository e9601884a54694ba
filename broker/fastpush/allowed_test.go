package fastpush

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// allowedHeaders are all that a push may have here. A header is added by a line here and in
// harmless, and by the argument that no handler asks for it.
var allowedHeaders = map[string]string{
	"Host": "here", "Content-Length": "2", "Authorization": "Bearer key", "Connection": "keep-alive",
	"Content-Type": "application/json", "User-Agent": "x/1", "Accept": "*/*", "Accept-Encoding": "gzip",
	"Accept-Language": "de", "Accept-Charset": "utf-8", "Traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
}

// otherHeaders are the rest of the registry of HTTP field names (RFC 9110 §18.4) and what is usual
// besides.
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

// TestOnlyAllowedHeaders: any other header sends a request to net/http, and keeps one there.
func TestOnlyAllowedHeaders(t *testing.T) {
	s := New(Options{Paths: paths})
	verdictOn := func(name, value string) (here, there bool) {
		text := "POST /v1/push HTTP/1.1\r\n"
		header := http.Header{}
		for known, usual := range map[string]string{"Host": "here", "Content-Length": "2"} {
			if !strings.EqualFold(name, known) {
				text += known + ": " + usual + "\r\n"
			}
		}
		text += name + ": " + value + "\r\n\r\n"
		if !strings.EqualFold(name, "Host") { // net/http takes it out
			header.Set(name, value)
		}
		_, v := readHead([]byte(text), paths)
		compare(t, []byte(text))
		return v == plain, s.plain(&http.Request{Method: "POST", ProtoMajor: 1, ProtoMinor: 1, RequestURI: "/v1/push", Header: header})
	}
	for name, value := range allowedHeaders {
		for _, name := range []string{name, strings.ToLower(name)} {
			if here, there := verdictOn(name, value); !here || !there {
				t.Errorf("%s: taken here: %v, from net/http: %v", name, here, there)
			}
		}
	}
	for name := range strings.FieldsSeq(otherHeaders) {
		if here, there := verdictOn(name, "1"); here || there {
			t.Errorf("%s: taken here: %v, from net/http: %v", name, here, there)
		}
	}
}

// TestEachOtherHeaderGoesBack: the request is answered all the same, by net/http.
func TestEachOtherHeaderGoesBack(t *testing.T) {
	s := start(t, nil)
	for name := range strings.FieldsSeq("Cookie Via X-Forwarded-For X-Request-ID Idempotency-Key Content-Encoding Baggage") {
		l := s.takenOver(t)
		before := s.taken.Load()
		l.send(fmt.Sprintf("POST /v1/push HTTP/1.1\r\nHost: here\r\n%s: x\r\nContent-Length: 2\r\n\r\nab", name))
		l.expect("ab")
		if s.taken.Load() != before {
			t.Errorf("%s is silently skipped", name)
		}
	}
}

// TestUnread: a peer that sends pushes and reads no answer is cut off.
func TestUnread(t *testing.T) {
	s := start(t, func(_ *site, o *Options) { o.Write = time.Millisecond })
	l := s.takenOver(t)
	text := request(strings.Repeat("x", 1<<20))
	for { // until the answers fill the buffers of both ends
		if _, err := io.WriteString(l, text); err != nil {
			break
		}
	}
	s.count(t, 0)
	_ = l.SetDeadline(time.Now().Add(patience))
	if _, err := io.Copy(io.Discard, l.r); err != nil && isTimeout(err) {
		t.Error("the connection goes on")
	}
}

// TestWriteDeadlineIsRenewed: the time for an answer begins with each.
func TestWriteDeadlineIsRenewed(t *testing.T) {
	s := start(t, nil)
	l := s.takenOver(t)
	for n := range 5 {
		s.mu.Lock()
		for c := range s.conns {
			c.armed = time.Time{} // as if the time of the last one had run out
			_ = c.SetWriteDeadline(time.Now().Add(-time.Second))
		}
		s.mu.Unlock()
		l.send(request(fmt.Sprint("answer ", n)))
		l.expect(fmt.Sprint("answer ", n))
	}
}

// TestNoDeadlineGoesBack: net/http sets its own.
func TestNoDeadlineGoesBack(t *testing.T) {
	s := start(t, nil)
	l := s.takenOver(t)
	s.mu.Lock()
	for c := range s.conns {
		_ = c.SetWriteDeadline(time.Now().Add(-time.Second))
	}
	s.mu.Unlock()
	l.send("GET /back HTTP/1.1\r\nHost: here\r\n\r\n")
	l.expect("GET /back")
}
