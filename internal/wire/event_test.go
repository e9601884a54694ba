package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/gobwas/ws"
)

func TestEventRoundTrip(t *testing.T) {
	tests := map[string]struct {
		event Event
		json  string
	}{
		"connected": {
			Event{Type: TypeConnected, Ref: RefOf(1), Client: "phone", User: "alice", Server: "b1", Ping: 25, Queued: ptr(0), ID: ptr(int64(5))},
			`{"type":"connected","ref":1,"client":"phone","user":"alice","server":"b1","ping":25,"queued":0,"id":5}`,
		},
		"subscribed": {
			Event{Type: TypeSubscribed, Ref: RefOf(0), Channel: "news", ID: ptr(int64(0)), Recovered: ptr(false)},
			`{"type":"subscribed","ref":0,"channel":"news","id":0,"recovered":false}`,
		},
		"gap":   {Event{Type: TypeGap, Channel: "a", After: ptr(int64(1)), ID: ptr(int64(1) << 52)}, `{"type":"gap","channel":"a","after":1,"id":4503599627370496}`},
		"reply": {Event{Type: TypeReply, Ref: RefOf(-1), Data: json.RawMessage(`{"a":[]}`)}, `{"type":"reply","ref":-1,"data":{"a":[]}}`},
		"markup": {
			Event{Type: TypeReply, Data: json.RawMessage(`"<b>&\u2028"`)},
			`{"type":"reply","data":"<b>&\u2028"}`,
		},
		"history": {
			Event{Type: TypeHistory, Channel: "a", Messages: &[]Stored{{1, json.RawMessage(`"<"`)}, {2, json.RawMessage(`null`)}}, More: true},
			`{"type":"history","channel":"a","messages":[{"id":1,"data":"<"},{"id":2,"data":null}],"more":true}`,
		},
		"empty history": {Event{Type: TypeHistory, Channel: "a", Messages: &[]Stored{}}, `{"type":"history","channel":"a","messages":[]}`},
		"error":         {Event{Type: TypeError, Code: "forbidden", Message: `channel <"a">: no`}, `{"type":"error","code":"forbidden","message":"channel <\"a\">: no"}`},
		"closing":       {Event{Type: TypeClosing, Code: "idle", Reconnect: ptr(true), AfterMS: 5}, `{"type":"closing","code":"idle","reconnect":true,"after_ms":5}`},
		"final":         {Event{Type: TypeClosing, Code: "superseded", Reconnect: ptr(false)}, `{"type":"closing","code":"superseded","reconnect":false}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			frame := test.event.Encode()
			if got := string(frame.JSON()); got != test.json {
				t.Errorf("encoded\n%s, want\n%s", got, test.json)
			}
			got, err := DecodeEvent(frame.JSON())
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, test.event) {
				t.Errorf("decoded %+v, want %+v", got, test.event)
			}
		})
	}
}

// TestEncodeOfBadData checks that one bad payload becomes an error for its client, not a
// line that breaks the stream.
func TestEncodeOfBadData(t *testing.T) {
	got, err := DecodeEvent(Event{Type: TypeReply, Ref: RefOf(7), Data: json.RawMessage(`{`)}.Encode().JSON())
	want := Event{Type: TypeError, Ref: RefOf(7), Code: "bad_request", Message: "the payload is not JSON"}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

func TestDecodeEventRefuses(t *testing.T) {
	for raw, want := range map[string]string{
		`{`:                       "not JSON: byte 1",
		`[]`:                      "a JSON object is expected, not array",
		`{}`:                      "type: missing",
		`{"type":"x","id":"7"}`:   "id: string does not fit, expected an integer, at byte 20",
		`{"type":"x","ref":true}`: "ref: true is not an integer",
	} {
		_, err := DecodeEvent([]byte(raw))
		if own, ok := errors.AsType[*Error](err); !ok || !strings.Contains(own.Message, want) {
			t.Errorf("%s: got %v, want %q", raw, err, want)
		}
	}
}

func TestEncodeMessage(t *testing.T) {
	for _, channel := range []string{"", "news", `a"b\c\\"`, "ünï/日本", "a\u2028b", "<&>", "$all"} {
		for _, data := range []string{`{}`, `null`, `{"a":"<&>\"\\"}`, "\"\u2028\"", strings.Repeat("1", 70_000)} {
			checkMessage(t, channel, 735325130218701, []byte(data))
		}
	}
}

// checkMessage compares with what encoding/json makes of the same event.
func checkMessage(t *testing.T, channel string, id int64, data []byte) {
	t.Helper()
	frame := EncodeMessage(channel, id, data)
	got, err := DecodeEvent(frame.JSON())
	if err != nil {
		t.Fatalf("channel %q, data %.40q: %v", channel, data, err)
	}
	want := Event{Type: TypeMessage, Channel: channel, ID: &id, Data: data}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("channel %q: got %+v, want %+v", channel, got, want)
	}
	if line := frame.Line(); bytes.IndexByte(line, '\n') != len(line)-1 {
		t.Fatalf("not one line: %.80q", line)
	}
}

func TestFrameViews(t *testing.T) {
	for _, n := range []int{2, 125, 126, 127, 65535, 65536, 70_000} {
		text := bytes.Repeat([]byte("x"), n)
		f := NewFrame(text)
		clear(text) // it copies
		want := strings.Repeat("x", n)
		if string(f.JSON()) != want || string(f.Line()) != want+"\n" {
			t.Errorf("%d bytes: wrong JSON or line", n)
		}
		r := bytes.NewReader(f.WebSocket())
		head, err := ws.ReadHeader(r)
		payload, _ := io.ReadAll(r)
		if err != nil || ws.CheckHeader(head, ws.StateClientSide) != nil || head.OpCode != ws.OpText ||
			!head.Fin || head.Length != int64(n) || string(payload) != want {
			t.Errorf("%d bytes: WebSocket frame %+v, %v, %d bytes behind the header", n, head, err, len(payload))
		}
		if head := len(f.WebSocket()) - n; n < 126 && head != 2 || n >= 126 && n < 65536 && head != 4 || n >= 65536 && head != 10 {
			t.Errorf("%d bytes: the header has %d", n, head) // RFC 6455 §5.2: the shortest one
		}
		for _, view := range [][]byte{f.JSON(), f.Line(), f.WebSocket()} {
			_ = append(view, "overwritten"...)
		}
		if string(f.Line()) != want+"\n" {
			t.Errorf("%d bytes: appending to a view changed the frame", n)
		}
		if f.Size() < n {
			t.Errorf("%d bytes: Size is %d", n, f.Size())
		}
	}
}

func TestBatch(t *testing.T) {
	for n := range 4 {
		var b Batch
		var line, socket []byte
		for i := range n {
			f := EncodeMessage("c", int64(i), []byte(`"x"`))
			b.Frames = append(b.Frames, f)
			line = append(line, f.Line()...)
			socket = append(socket, f.WebSocket()...)
		}
		if !bytes.Equal(b.Line(), line) || !bytes.Equal(b.WebSocket(), socket) {
			t.Errorf("%d frames: joined to %q and %q", n, b.Line(), b.WebSocket())
		}
		if line, again := b.Line(), b.Line(); n > 0 && &line[0] != &again[0] {
			t.Errorf("%d frames: joined twice", n)
		}
	}
}

func TestCloseCodes(t *testing.T) {
	reconnect := map[CloseReason]bool{
		CloseDraining: true, CloseSuperseded: false, CloseUnauthorized: false, CloseExpired: true, CloseDisconnected: false,
		CloseBadRequest: false, CloseSlow: true, CloseIdle: true, CloseOverloaded: true,
	}
	seen := map[int]bool{}
	for reason, want := range reconnect {
		status := reason.Status()
		if got, ok := CloseReasonOf(status); !ok || got != reason || status < 4001 || status > 4009 || seen[status] {
			t.Errorf("%s: status %d, which is %s", reason, status, got)
		}
		seen[status] = true
		if reason.Reconnect() != want {
			t.Errorf("%s: reconnect %t", reason, !want)
		}
	}
	if CloseGone.Status() != 1000 || CloseGone.Reconnect() {
		t.Error("a peer that went first is sent nothing")
	}
	for _, status := range []int{0, 1000, 1006, 4000, 4010} {
		if reason, ok := CloseReasonOf(status); ok {
			t.Errorf("status %d is %s", status, reason)
		}
	}
}
