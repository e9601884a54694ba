package spec_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"switchboard/broker"
	"switchboard/broker/namespace"
	"switchboard/kit/kittest"
)

// recorder compares the frames of a session with the AsyncAPI document.
type recorder struct {
	t *testing.T
	*messages
	seen map[string]bool // by type
}

// frame checks one frame, and returns it decoded.
func (r *recorder) frame(text []byte) object {
	r.t.Helper()
	typ, err := r.checkFrame(r.t, text)
	if err != nil {
		r.t.Errorf("%s: %v", text, err)
	}
	r.seen[typ] = true
	var frame object
	if err := json.Unmarshal(text, &frame); err != nil {
		r.t.Fatal(err)
	}
	return frame
}

// recorded is a client whose messages and frames are checked.
type recorded struct {
	*recorder
	lines *lines
}

// tell sends a message, which must fit the document.
func (c recorded) tell(message string) {
	c.t.Helper()
	var head struct{ Type string }
	if err := json.Unmarshal([]byte(message), &head); err != nil {
		c.t.Fatal(err)
	}
	if err := c.check(c.t, c.fromClient[head.Type], []byte(message)); err != nil {
		c.t.Errorf("%s: %v", message, err)
	}
	c.lines.send(message)
}

// until reads frames up to the first one of a type, and returns it. A ping is answered.
func (c recorded) until(typ string) object {
	c.t.Helper()
	for {
		frame := c.frame(c.lines.nextText())
		if frame["type"] == "ping" {
			c.lines.send(`{"type":"pong"}`)
		}
		if frame["type"] == typ {
			return frame
		}
		if frame["type"] == "error" || frame["type"] == "closing" {
			c.t.Fatalf("%v, want %s", frame, typ)
		}
	}
}

// ask sends a message and reads until an answer of the type.
func (c recorded) ask(message, typ string) object {
	c.t.Helper()
	c.tell(message)
	return c.until(typ)
}

// TestSession records a session on each transport, and compares its frames with the document. The
// session has each type of message.
func TestSession(t *testing.T) {
	rec := &recorder{t, parseMessages(t), map[string]bool{}}
	b := startBroker(t, kittest.NewRedis(redis.Client(t)), func(o *broker.Options) {
		o.Requests.From = namespace.Users
		o.Timing.Ping = time.Second
		o.Access.Namespaces, _ = namespace.New([]namespace.Rule{{
			Name: "*", Subscribe: namespace.Anyone, Publish: namespace.Anyone, Presence: namespace.Anyone, History: namespace.Anyone, State: namespace.Anyone,
		}})
	})
	r := &runner{t: t, broker: b}
	connect := func(message string) recorded {
		c := recorded{rec, r.dial()}
		c.ask(message, "connected")
		return c
	}
	alice := connect(`{"type":"connect","ref":1,"token":"` + token(t, "alice", "") + `","client":"phone","after":1,"instance":"x","attempt":1}`)
	alice.until("gap") // the position on $all is not known
	alice.ask(`{"type":"subscribe","ref":2,"channel":"news","presence":true,"after":5}`, "subscribed")
	bob := connect(`{"type":"connect","client":"tab","ack":"auto"}`)
	bob.ask(`{"type":"subscribe","channel":"news","presence":true}`, "subscribed")
	alice.until("join")
	alice.tell(`{"type":"here","channel":"news","data":{"x":4}}`)
	bob.until("here")
	bob.ask(`{"type":"presence","ref":3,"channel":"news","limit":10}`, "presence")
	alice.ask(`{"type":"subscribe","channel":"$user:alice"}`, "join")

	// Messages, the client queue and the history.
	b.OK(t, "POST", "/v1/push", `{"channel":"news","data":{"title":"hi"}}`, "Authorization", "Bearer "+keyPush)
	alice.until("message")
	b.OK(t, "POST", "/v1/push", `{"client":"alice/phone","data":1}`, "Authorization", "Bearer "+keyPush)
	queued, _ := json.Marshal(alice.until("message")["id"])
	alice.tell(`{"type":"ack","id":` + string(queued) + `}`)
	alice.ask(`{"type":"publish","ref":4,"channel":"news","data":2,"key":"k"}`, "published")
	alice.ask(`{"type":"history","ref":5,"channel":"news","after":0,"limit":10,"state":true}`, "history")

	// The state of a channel.
	alice.ask(`{"type":"subscribe","ref":6,"channel":"room-7","state":true}`, "state")
	b.OK(t, "POST", "/v1/push", `{"channel":"room-7","set":{"turn":"amy"},"ttl":60,"data":1}`, "Authorization", "Bearer "+keyPush)
	alice.until("message")
	alice.ask(`{"type":"state","ref":7,"channel":"room-7","limit":10}`, "state")
	alice.ask(`{"type":"publish","ref":8,"channel":"room-7","set":{"turn":"bob"}}`, "error")
	alice.ask(`{"type":"unsubscribe","ref":9,"channel":"room-7"}`, "unsubscribed")

	// Requests, tokens and pings.
	alice.ask(`{"type":"request","ref":10,"data":{"article":12}}`, "accepted")
	b.OK(t, "POST", "/v1/reply", `{"client":"alice/phone","ref":10,"data":{"price":12}}`, "Authorization", "Bearer "+keyPush)
	alice.until("reply")
	alice.ask(`{"type":"request","ref":11,"method":"room.list","data":{}}`, "reply")
	alice.ask(`{"type":"request","ref":12,"method":"no.such","data":{}}`, "error")
	alice.ask(`{"type":"refresh","ref":13,"token":"`+token(t, "alice", "")+`"}`, "refreshed")
	alice.ask(`{"type":"ping","ref":14}`, "pong")
	bob.ask(`{"type":"unsubscribe","channel":"news"}`, "unsubscribed")
	alice.until("leave")
	alice.until("ping")

	rec.recordWebSocket(b)
	rec.recordStream(b)
	b.OK(t, "POST", "/v1/users/alice/disconnect", "", "Authorization", "Bearer "+keyAdmin)
	alice.until("closing")
	for typ := range rec.fromBroker {
		if !rec.seen[typ] {
			t.Errorf("no frame had the type %s", typ)
		}
	}
}

// recordWebSocket records the first frames of a WebSocket.
func (r *recorder) recordWebSocket(b *kittest.Broker) {
	r.t.Helper()
	conn, _, err := websocket.Dial(r.t.Context(), "ws://"+b.HTTP+"/ws?token="+token(r.t, "alice", ""), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.CloseNow()
	if err := conn.Write(r.t.Context(), websocket.MessageText, []byte(`{"type":"subscribe","ref":1,"channel":"news"}`)); err != nil {
		r.t.Fatal(err)
	}
	for range 2 {
		_, text, err := conn.Read(r.t.Context())
		if err != nil {
			r.t.Fatal(err)
		}
		r.frame(text)
	}
}

// recordStream records the first events of a stream, up to an error.
func (r *recorder) recordStream(b *kittest.Broker) {
	r.t.Helper()
	resp, err := httpClient.Get("http://" + b.HTTP + "/sse?channel=news&channel=$user:bob&presence=true&token=" + token(r.t, "alice", ""))
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		r.t.Fatalf("%s %s", resp.Status, text)
	}
	channel := pointer("").at("channels", "events", "messages")
	name := ""
	for read := bufio.NewScanner(resp.Body); read.Scan(); {
		line := read.Text()
		if line == "" {
			name = ""
		}
		if text, found := strings.CutPrefix(line, "event:"); found {
			name = strings.TrimSpace(text)
		}
		data, found := strings.CutPrefix(line, "data:")
		if !found {
			continue
		}
		typ := r.frame([]byte(data))["type"].(string)
		if want := map[string]string{"message": "", "error": "refused"}[typ]; typ != name && name != want || r.get(channel.at(typ)) == nil {
			r.t.Errorf("the event %q has the type %s", name, typ)
		}
		if typ == "error" {
			return
		}
	}
	r.t.Error("the stream ended before an error")
}
