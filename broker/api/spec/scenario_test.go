package spec_test

import (
	"bufio"
	"encoding/json"
	"net"
	"strings"
	"testing"
	"time"

	"switchboard/kit/kittest"
)

// unprovoked are the documented statuses that no test causes, and why.
var unprovoked = map[string]string{
	"openStream 204":         "a stream must have ended for good before",
	"getChannelHistory 429":  "256 calls must wait",
	"getClientQueue 429":     "256 calls must wait",
	"getUserClientQueue 429": "256 calls must wait",
}

// TestCalls makes every call of the document to a real broker, over memory and over Redis.
func TestCalls(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		r := newRunner(t, newBroker(t))
		r.scenario()
		r.provoke()
	})
	t.Run("redis", func(t *testing.T) {
		server := redis.StartCopy(t)
		r := newRunner(t, startBroker(t, kittest.NewRedis(server.Client(t)), nil))
		r.scenario()
		r.provoke()
		server.Kill()
		r.unavailable()
		r.report(unprovoked)
	})
}

// scenario makes the calls of all steps.
func (r *runner) scenario() {
	r.saved["token"], r.saved["fixed"] = token(r.t, "alice", ""), token(r.t, "alice", "watch")
	lines := r.connect(`{"type":"connect","token":"` + r.saved["token"] + `","client":"phone"}`)
	lines.ask(`{"type":"subscribe","ref":1,"channel":"news","presence":true}`)
	r.play([]step{{op: "push", body: `{"client":"alice/tab","data":1}`}})
	r.saved["event"] = r.queuedEvent("client=tab&token=" + r.saved["token"])
	r.play(coreSteps)
	r.play(operatorSteps)
	r.play(lastSteps)
}

// lines is a client on the TCP port.
type lines struct {
	t    *testing.T
	conn net.Conn
	read *bufio.Scanner
}

// connect connects a client on the TCP port, and waits until it is connected.
func (r *runner) connect(message string) *lines {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.broker.TCP)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	l := &lines{r.t, conn, bufio.NewScanner(conn)}
	l.ask(message)
	return l
}

// ask sends a message and returns the next one from the broker.
func (l *lines) ask(message string) object {
	l.t.Helper()
	_ = l.conn.SetDeadline(time.Now().Add(timeout))
	if _, err := l.conn.Write([]byte(message + "\n")); err != nil {
		l.t.Fatal(err)
	}
	if !l.read.Scan() {
		l.t.Fatalf("%s: the connection ended: %v", message, l.read.Err())
	}
	var answer object
	if err := json.Unmarshal(l.read.Bytes(), &answer); err != nil || answer["type"] == "error" {
		l.t.Fatalf("%s: %s", message, l.read.Bytes())
	}
	return answer
}

// queuedEvent opens a stream, and returns the id of the first message of the client queue.
func (r *runner) queuedEvent(query string) string {
	r.t.Helper()
	resp, err := httpClient.Get("http://" + r.broker.HTTP + "/sse?" + query)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	id := ""
	for read := bufio.NewScanner(resp.Body); read.Scan(); {
		if rest, found := strings.CutPrefix(read.Text(), "id:"); found {
			id = strings.TrimSpace(rest)
		}
		if strings.Contains(read.Text(), `"type":"message"`) {
			return id
		}
	}
	r.t.Fatalf("the stream ended: %s", resp.Status)
	return ""
}
