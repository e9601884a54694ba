package transport

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/gobwas/ws"
)

// raw returns a masked frame with any first byte. The mask is zero, and the length field is as
// short as possible.
func raw(first byte, payload string) []byte {
	head := []byte{first, 0x80 | byte(len(payload))}
	if len(payload) > 125 {
		head = binary.BigEndian.AppendUint16([]byte{first, 0x80 | 126}, uint16(len(payload)))
	}
	return append(append(head, 0, 0, 0, 0), payload...)
}

func closeBody(status int, reason string) string {
	return string(binary.BigEndian.AppendUint16(nil, uint16(status))) + reason
}

// TestFramingErrors checks that each violation of RFC 6455 ends the connection with the code that
// the RFC names, and that messages before it are not lost.
func TestFramingErrors(t *testing.T) {
	speakJSON(t)
	const text, binaryFrame, cont, closing, ping, pong = 0x81, 0x82, 0x80, 0x88, 0x89, 0x8a
	const more = 0x7f // without FIN
	tests := map[string]struct {
		sent   []byte
		status int
	}{
		"§5.1 unmasked":                           {append([]byte{text, 2}, "{}"...), 1002},
		"§5.1 unmasked ping":                      {[]byte{ping, 0}, 1002},
		"§5.2 RSV1":                               {raw(text|0x40, "{}"), 1002},
		"§5.2 RSV2":                               {raw(text|0x20, "{}"), 1002},
		"§5.2 RSV3 on a ping":                     {raw(ping|0x10, ""), 1002},
		"§5.2 opcode 3":                           {raw(0x83, ""), 1002},
		"§5.2 opcode 7":                           {raw(0x87, ""), 1002},
		"§5.2 opcode 11":                          {raw(0x8b, ""), 1002},
		"§5.2 opcode 15":                          {raw(0x8f, ""), 1002},
		"§5.2 length with the first bit":          {append([]byte{text, 0xff, 0x80}, make([]byte, 11)...), 1002},
		"§5.4 continuation of nothing":            {raw(cont, "x"), 1002},
		"§5.4 continuation after the end":         {join(raw(text&more, "a"), raw(cont, "b"), raw(cont, "c")), 1002},
		"§5.4 a new message inside another":       {join(raw(text&more, "a"), raw(text, "b")), 1002},
		"§5.4 new one inside one too large":       {join(clientFrame(false, ws.OpText, strings.Repeat("x", messageLimit+1)), raw(text, "b")), 1002},
		"§5.5 ping in fragments":                  {raw(ping&more, ""), 1002},
		"§5.5 close in fragments":                 {raw(closing&more, ""), 1002},
		"§5.5 ping of 126 bytes":                  {raw(ping, strings.Repeat("x", 126)), 1002},
		"§5.5 pong of 126 bytes":                  {raw(pong, strings.Repeat("x", 126)), 1002},
		"§5.6 binary":                             {raw(binaryFrame, "x"), 1003},
		"§5.6 binary in fragments":                {raw(binaryFrame&more, "x"), 1003},
		"§5.6 binary, too large":                  {clientFrame(true, ws.OpBinary, strings.Repeat("x", messageLimit+1)), 1003},
		"§8.1 not UTF-8":                          {raw(text, "\xff"), 1007},
		"§8.1 half a character at the end":        {raw(text, "a\xc3"), 1007},
		"§8.1 surrogate":                          {raw(text, "\xed\xa0\x80"), 1007},
		"§8.1 overlong":                           {raw(text, "\xc0\xaf"), 1007},
		"§8.1 not UTF-8 over fragments":           {join(raw(text&more, "\xc3"), raw(cont, "\xc3")), 1007},
		"§5.5.1 close, one byte":                  {raw(closing, "\x03"), 1002},
		"§5.5.1 close, reason not UTF-8":          {raw(closing, closeBody(1000, "\xff")), 1007},
		"§5.5.1 close without a code":             {raw(closing, ""), 1000},
		"§5.5.1 close is echoed":                  {raw(closing, closeBody(1000, "bye")), 1000},
		"§5.5.1 close amid fragments":             {join(raw(text&more, "a"), raw(closing, closeBody(1001, ""))), 1001},
		"§5.5.1 frames after a close are ignored": {join(raw(closing, closeBody(1001, "")), raw(ping, ""), raw(0xff, "")), 1001},
	}
	for _, status := range []int{1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999} {
		tests[fmt.Sprintf("§7.4 code %d", status)] = struct {
			sent   []byte
			status int
		}{raw(closing, closeBody(status, "")), status}
	}
	for _, status := range []int{0, 999, 1004, 1005, 1006, 1015, 1016, 2000, 2999, 5000, 65535} {
		tests[fmt.Sprintf("§7.4 code %d", status)] = struct {
			sent   []byte
			status int
		}{raw(closing, closeBody(status, "")), 1002}
	}
	service := pollWay.serve(t, setup{})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int{1 << 30, 1} {
				if size == 1 && len(test.sent) > 1000 {
					continue
				}
				p, s := service.in(t).connect()
				p.writeCut(join(p.message("before"), test.sent, p.message("after")), size)
				s.want(event{"message", "before"})
				e := s.next()
				if e.kind == "broken" || e.kind == "message" { // a message may come before the violation
					e = s.next()
				}
				if e.kind == "broken" {
					e = s.next()
				}
				if e.kind != "closed" {
					t.Fatalf("the session receives %v", e)
				}
				got := p.read()
				if code, _, _ := strings.Cut(got.text, " "); got.kind != "close" || code != fmt.Sprint(test.status) {
					t.Fatalf("the peer reads %v, want close %d", got, test.status)
				}
				p.want(event{"end", ""})
				_ = p.Close()
				s.do(s.wantSilence)
			}
		})
	}
}

// TestWebRefusesTheSame checks the rules that the library leaves to webConn.
func TestWebRefusesTheSame(t *testing.T) {
	speakJSON(t)
	service := webWay.serve(t, setup{})
	for name, test := range map[string]struct {
		sent []byte
		want string
	}{
		"binary":    {clientFrame(true, ws.OpBinary, "x"), "1003 messages are text frames"},
		"not UTF-8": {clientFrame(true, ws.OpText, "\xff"), "1007 a text frame is not UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			p, s := service.in(t).connect()
			p.write(test.sent)
			p.want(event{"close", test.want})
			_ = p.Close()
			s.want(event{"broken", ""}, event{"closed", ""})
		})
	}
}
