package proxyproto

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
)

// v2 returns a header of version 2.
func v2(command, family byte, body string) string {
	head := append([]byte(signature), command, family)
	return string(binary.BigEndian.AppendUint16(head, uint16(len(body)))) + body
}

var (
	four  = "\xc0\x00\x02\x07\x0a\x00\x00\x01\xc8\x70\x1b\x9e"
	six   = "\x20\x01\x0d\xb8" + strings.Repeat("\x00", 11) + "\x05" + strings.Repeat("\x00", 15) + "\x01\xc8\x70\x1b\x9e"
	tlv   = "\x01\x00\x02h2"
	paths = strings.Repeat("\x00", 216)
)

// seeds are headers with the address that they name; "" for none.
var seeds = []struct {
	header, want string
	err          error
}{
	{header: "PROXY TCP4 192.0.2.7 10.0.0.1 51312 7070\r\n", want: "192.0.2.7:51312"},
	{header: "PROXY TCP4 192.0.2.7 10.0.0.1 0 65535\r\n", want: "192.0.2.7:0"},
	{header: "PROXY TCP6 2001:db8::5 ::1 51312 7070\r\n", want: "[2001:db8::5]:51312"},
	{header: "PROXY TCP6 ::ffff:192.0.2.7 ::1 51312 7070\r\n", want: "192.0.2.7:51312"},
	{header: "PROXY UNKNOWN\r\n"},
	{header: "PROXY UNKNOWN ffff:f...f:ffff 65535 anything\r\n"},
	{header: "PROXY \r\n", err: ErrMalformed},
	{header: "PROXY UDP4 192.0.2.7 10.0.0.1 51312 7070\r\n", err: ErrMalformed},
	{header: "PROXY TCP4 192.0.2.7 10.0.0.1 51312\r\n", err: ErrMalformed},
	{header: "PROXY TCP4 192.0.2.7 10.0.0.1 51312 7070 \r\n", err: ErrMalformed},
	{header: "PROXY TCP4  192.0.2.7 10.0.0.1 51312 7070\r\n", err: ErrMalformed},
	{header: "PROXY TCP4 192.0.2.7 10.0.0.1 51312 7070\n", err: ErrMalformed},
	{header: "PROXY TCP4 192.0.2.7 10.0.0.1 051312 7070\r\n", err: ErrMalformed},
	{header: "PROXY TCP4 192.0.2.7 10.0.0.1 +1 7070\r\n", err: ErrMalformed},
	{header: "PROXY TCP4 192.0.2.7 10.0.0.1 65536 7070\r\n", err: ErrMalformed},
	{header: "PROXY TCP4 192.0.2.007 10.0.0.1 51312 7070\r\n", err: ErrMalformed},
	{header: "PROXY TCP4 ::1 ::1 51312 7070\r\n", err: ErrMalformed},
	{header: "PROXY TCP6 192.0.2.7 10.0.0.1 51312 7070\r\n", err: ErrMalformed},
	{header: "PROXY TCP6 fe80::1%eth0 ::1 51312 7070\r\n", err: ErrMalformed},
	{header: "PROXY UNKNOWN " + strings.Repeat("x", 200) + "\r\n", err: ErrTooLong},
	{header: v2(proxied, 0x11, four), want: "192.0.2.7:51312"},
	{header: v2(proxied, 0x11, four+tlv), want: "192.0.2.7:51312"},
	{header: v2(proxied, 0x12, four), want: "192.0.2.7:51312"},
	{header: v2(proxied, 0x21, six), want: "[2001:db8::5]:51312"},
	{header: v2(proxied, 0x31, paths)},
	{header: v2(proxied, 0x00, "")},
	{header: v2(proxied, 0x00, "junk")},
	{header: v2(local, 0x00, "")},
	{header: v2(local, 0xff, "junk")},
	{header: v2(proxied, 0x11, four[:11]), err: ErrMalformed},
	{header: v2(proxied, 0x21, six[:35]), err: ErrMalformed},
	{header: v2(proxied, 0x41, paths), err: ErrMalformed},
	{header: v2(proxied, 0x13, four), err: ErrMalformed},
	{header: v2(0x22, 0x11, four), err: ErrMalformed},
	{header: v2(0x11, 0x11, four), err: ErrMalformed},
	{header: v2(proxied, 0x11, strings.Repeat("x", MaxHeader)), err: ErrTooLong},
	{header: "{\"type\":\"connect\"}\n", err: ErrMissing},
	{header: "POST / HTTP/1.1\r\n", err: ErrMissing},
	{header: "\r\n\r\n{}\n", err: ErrMissing},
}

// TestParse reads each header with bytes after it, and in every number of pieces.
func TestParse(t *testing.T) {
	for _, s := range seeds {
		client, n, err := Parse([]byte(s.header + "{}\n"))
		switch {
		case s.err != nil:
			if !errors.Is(err, s.err) || n != 0 {
				t.Errorf("%.60q: %v %d %v, want %v", s.header, client, n, err, s.err)
			}
		case err != nil || n != len(s.header) || client.IsValid() != (s.want != "") || client.IsValid() && client.String() != s.want:
			t.Errorf("%.60q: %v %d %v, want %s", s.header, client, n, err, s.want)
		}
		for cut := range len(s.header) {
			if _, n, err := Parse([]byte(s.header[:cut])); n != 0 || err != nil && s.err == nil {
				t.Errorf("%.60q cut after %d bytes: %d %v", s.header, cut, n, err)
			}
		}
	}
}

func TestBegins(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "PROXY": false, "PROXY ": true, "POST /": false, signature: true, signature[:11]: false, "\r\n": false, "{}": false,
	} {
		if Begins([]byte(text)) != want {
			t.Errorf("%q: %t", text, !want)
		}
	}
}

// FuzzParse checks that a header is read the same in one piece, in two, and with bytes after it,
// and that more bytes are only awaited below MaxHeader.
func FuzzParse(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s.header), 3)
	}
	f.Fuzz(func(t *testing.T, buf []byte, cut int) {
		client, n, err := Parse(buf)
		switch {
		case n < 0 || n > len(buf) || n > MaxHeader || n > 0 && err != nil || client.IsValid() && n == 0:
			t.Fatalf("%v %d %v", client, n, err)
		case n == 0 && err == nil && len(buf) >= MaxHeader:
			t.Fatal("more than MaxHeader bytes are awaited")
		case client.Addr().Zone() != "" || client.Addr().Is4In6():
			t.Fatal(client)
		case n > 0 && !Begins(buf):
			t.Fatal("a header without a mark")
		}
		if n > 0 {
			if again, m, err := Parse(buf[:n]); again != client || m != n || err != nil {
				t.Fatalf("alone: %v %d %v, want %v %d", again, m, err, client, n)
			}
			if cut = min(max(cut, 0), n-1); cut < n {
				if _, m, err := Parse(buf[:cut]); m != 0 || err != nil {
					t.Fatalf("cut after %d: %d %v", cut, m, err)
				}
			}
		}
		if err != nil {
			if _, _, after := Parse(append(bytes.Clone(buf), "more"...)); after == nil {
				t.Fatal("an error goes away with more bytes")
			}
		}
	})
}
