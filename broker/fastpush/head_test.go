package fastpush

import (
	"bufio"
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

var paths = []string{"/v1/push", "/v1/push/batch"}

// headCases are requests and their forms.
var headCases = []struct {
	text string
	want form
}{
	{"POST /v1/push HTTP/1.1\r\nHost: a:1\r\nContent-Length: 2\r\n\r\n{}", simple},
	{"POST /v1/push/batch HTTP/1.1\r\nhost:[::1]:8\r\nCONTENT-LENGTH:\t2 \r\n\r\n{}", simple},
	{"POST /v1/push HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer key\r\nContent-Length: 0\r\n\r\n", simple},
	{"POST /v1/push HTTP/1.1\r\nHost: a\r\nConnection: Keep-Alive\r\nAccept: \r\nContent-Length: 007\r\n\r\n", simple},
	{"", partial},
	{"POST", partial},
	{"POST /v1/push HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n", partial},
	{"POST /v1/push HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r", partial},
	{"POST " + strings.Repeat("x", maxHead), notSimple},
	{"POST /v1/push HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nX: " + strings.Repeat("x", maxHead) + "\r\n\r\n", notSimple},
	{"GET", notSimple},
	{"post /v1/push HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n", notSimple},
	{"HEAD /v1/push HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n", notSimple},
	{"POST /v1/push HTTP/1.0\r\nHost: a\r\nContent-Length: 2\r\n\r\n", notSimple},
	{"POST /v1/push HTTP/2.0\r\nHost: a\r\nContent-Length: 2\r\n\r\n", notSimple},
	{"POST /v1/push  HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n", notSimple},
	{"POST /v1/push?x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n", notSimple},
	{"POST /v1/pushes HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n", notSimple},
	{"POST http://a/v1/push HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n", notSimple},
	{"POST /v1/push HTTP/1.1\r\n\r\n", notSimple},
	{"POST /v1/push HTTP/1.1\r\nHost: a\r\n\r\n", notSimple},
	{"POST /v1/push HTTP/1.1\r\nContent-Length: 2\r\n\r\n", notSimple},
	{"POST /v1/push HTTP/1.1\r\nHost:\r\nContent-Length: 2\r\n\r\n", notSimple},
	{"POST /v1/push HTTP/1.1\r\nHost: a b\r\nContent-Length: 2\r\n\r\n", notSimple},
	{"POST /v1/push HTTP/1.1\r\nHost: a\r\nHost: a\r\nContent-Length: 2\r\n\r\n", notSimple},
	{"POST /v1/push HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n", notSimple},
	{"POST /v1/push HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n", notSimple},
	{"POST /v1/push HTTP/1.1\r\nHost: a\r\nContent-Length: 2, 2\r\n\r\n", notSimple},
	{"POST /v1/push HTTP/1.1\r\nHost: a\r\nContent-Length: +2\r\n\r\n", notSimple},
	{"POST /v1/push HTTP/1.1\r\nHost: a\r\nContent-Length: -2\r\n\r\n", notSimple},
	{"POST /v1/push HTTP/1.1\r\nHost: a\r\nContent-Length: 0x2\r\n\r\n", notSimple},
	{"POST /v1/push HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n", notSimple},
	{"POST /v1/push HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", notSimple},
	{"POST /v1/push HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n", notSimple},
	{"POST /v1/push HTTP/1.1\r\nHost: a\r\nContent-Length : 2\r\n\r\n", notSimple},
	{"POST /v1/push HTTP/1.1\r\nHost: a\r\n Content-Length: 2\r\n\r\n", notSimple},
	{"POST /v1/push HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nX: y\r\n z\r\n\r\n", notSimple},
	{"POST /v1/push HTTP/1.1\nHost: a\nContent-Length: 2\n\n\r\n\r\n", notSimple},
	{"POST /v1/push HTTP/1.1\nHost: a\nContent-Length: 2\n\n", notSimple},
	{"POST /v1/push HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\n", notSimple},
	{"POST /v1/push HTTP/1.1\r\nHost: a\r\nContent-Length: 2\n\r\n", notSimple},
	{"POST /v1/push HTTP/1.1\r\nHost: a\r\nContent-Length: 2\nX: y\r\n\r\n", notSimple},
	{"POST /v1/push HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nX: y\rz\r\n\r\n", notSimple},
	{"POST /v1/push HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nX: \x00\r\n\r\n", notSimple},
	{"POST /v1/push HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nX: ü\r\n\r\n", notSimple},
	{"POST /v1/push HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nX\r\n\r\n", notSimple},
	{"POST /v1/push HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n: y\r\n\r\n", notSimple},
	{"POST /v1/push HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nConnection: close\r\n\r\n", notSimple},
	{"POST /v1/push HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nConnection: keep-alive, close\r\n\r\n", notSimple},
	{"POST /v1/push HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n", notSimple},
	{"POST /v1/push HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n", notSimple},
	{"POST /v1/push HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nTrailer: X\r\n\r\n", notSimple},
	{"POST /v1/push HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nOrigin: http://b\r\n\r\n", notSimple},
	{"POST /v1/push HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nSEC-Fetch-Site: cross-site\r\n\r\n", notSimple},
	{"POST /v1/push HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n", notSimple},
}

func TestParseHead(t *testing.T) {
	for _, row := range headCases {
		if _, got := parseHead([]byte(row.text), paths); got != row.want {
			t.Errorf("%.120q: %v, want %v", row.text, got, row.want)
		}
		compareWithNetHTTP(t, []byte(row.text))
	}
}

// TestParseHeadInPieces checks that a simple head is partial until it is complete.
func TestParseHeadInPieces(t *testing.T) {
	for _, row := range headCases {
		h, f := parseHead([]byte(row.text), paths)
		for n := 0; f == simple && n < h.headSize; n++ {
			if _, got := parseHead([]byte(row.text[:n]), paths); got != partial {
				t.Fatalf("%q: %v", row.text[:n], got)
			}
		}
	}
}

func FuzzParseHead(f *testing.F) {
	for _, row := range headCases {
		f.Add([]byte(row.text))
	}
	f.Fuzz(compareWithNetHTTP)
}

// compareWithNetHTTP fails the test if parseHead accepts a request that net/http reads differently.
func compareWithNetHTTP(t *testing.T, text []byte) {
	h, f := parseHead(text, paths)
	if f != simple {
		return
	}
	buffered := bufio.NewReaderSize(bytes.NewReader(text), len(text)+16)
	r, err := http.ReadRequest(buffered)
	if err != nil {
		t.Fatalf("%q: net/http: %v", text, err)
	}
	if read := len(text) - buffered.Buffered(); read != h.headSize {
		t.Errorf("%q: the head has %d bytes for net/http, %d for parseHead", text, read, h.headSize)
	}
	if r.Method != "POST" || r.RequestURI != h.path || r.URL.Path != h.path || r.Proto != "HTTP/1.1" || r.Host == "" {
		t.Errorf("%q: %s %q %s %q, not %q", text, r.Method, r.RequestURI, r.Proto, r.Host, h.path)
	}
	if r.ContentLength != int64(h.bodySize) || len(r.TransferEncoding) > 0 || r.Trailer != nil || r.Close {
		t.Errorf("%q: length %d, not %d; transfer encoding %q, trailer %v, close %v", text, r.ContentLength, h.bodySize, r.TransferEncoding, r.Trailer, r.Close)
	}
	if r.Header.Get("Authorization") != string(h.authorization) || len(r.Header["Authorization"]) > 1 {
		t.Errorf("%q: authorization %q, not %q", text, r.Header["Authorization"], h.authorization)
	}
	for name := range r.Header { // else a connection would be taken over and handed back again and again
		if value := r.Header.Get(name); !allowed(name, value) {
			t.Errorf("%q: %s: %s is not allowed", text, name, value)
		}
	}
	if err := http.NewCrossOriginProtection().Check(r); err != nil || r.Header.Get("Expect") != "" || r.Header.Get("Upgrade") != "" {
		t.Errorf("%q: %v, expects %q, upgrades to %q", text, err, r.Header.Get("Expect"), r.Header.Get("Upgrade"))
	}
}

func BenchmarkParseHead(b *testing.B) {
	body := `{"channel":"news","data":1}`
	text := []byte("POST /v1/push HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: Go-http-client/1.1\r\nContent-Length: " +
		strconv.Itoa(len(body)) + "\r\nAuthorization: Bearer a-key-of-some-length\r\nContent-Type: application/json\r\nAccept-Encoding: gzip\r\n\r\n" + body)
	b.ReportAllocs()
	for b.Loop() {
		if _, f := parseHead(text, paths); f != simple {
			b.Fatal(f)
		}
	}
}
