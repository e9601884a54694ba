package spec_test

import (
	"bufio"
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xdg-go/scram"

	"switchboard/events"
	"switchboard/internal/redispipe"
	"switchboard/kit/kittest"
)

// unprovoked are the documented statuses that no test causes, and why.
var unprovoked = map[string]string{
	"openStream 204":         "a stream must have ended for good before",
	"getWebhooks 404":        "the test brokers have webhooks",
	"listDeadLetters 404":    "the test brokers have webhooks",
	"retryDeadLetters 404":   "the test brokers have webhooks",
	"getChannelHistory 429":  "256 calls must wait",
	"getClientQueue 429":     "256 calls must wait",
	"getUserClientQueue 429": "256 calls must wait",
	"logIn 410":              "a challenge must be older than a minute",
	"acknowledgeStream 429":  "the test brokers have no message rate; TestSSEAckRate causes it",
}

// TestCalls makes every call of the document to a real broker, over memory and over Redis, which
// then dies. Together they have every documented status.
func TestCalls(t *testing.T) {
	seen := map[string]map[int]bool{}
	t.Run("memory", func(t *testing.T) {
		r := newRunner(t, startBroker(t, kittest.NewMemory(), withWebhooks(t, events.NewMemory(events.StoreOptions{}))), seen)
		r.scenario()
		r.play(rateSteps)
		r.provoke()
		r.flood(floods)
	})
	t.Run("redis", func(t *testing.T) {
		server := redis.StartCopy(t)
		eventStore := events.NewRedis(redispipe.New(server.Client(t), redispipe.Options{}), events.StoreOptions{})
		r := newRunner(t, startBroker(t, kittest.NewRedis(server.Client(t)), withWebhooks(t, eventStore)), seen)
		r.scenario()
		r.play(rateSteps)
		r.play(durableSteps)
		server.Kill()
		r.unavailable()
		r.report(unprovoked)
	})
}

// durableSteps need a replica, which the Redis server does not have.
var durableSteps = []step{
	{op: "push", body: `{"channel":"room-7","add":{"moves":1},"durable":true}`, status: 503, code: "unavailable"},
	{op: "holdPlaces", path: "play-7", body: `{"seats":["A20"],"durable":true}`, status: 503, code: "unavailable"},
}

// scenario makes the calls of all steps.
func (r *runner) scenario() {
	r.saved["token"], r.saved["fixed"] = token(r.t, "alice", ""), token(r.t, "alice", "watch")
	lines := r.connect(`{"type":"connect","token":"` + r.saved["token"] + `","client":"phone"}`)
	lines.ask(`{"type":"subscribe","ref":1,"channel":"news","presence":true}`)
	r.play([]step{{op: "push", body: `{"client":"alice/tab","data":1}`}})
	r.saved["event"] = r.queuedEvent("client=tab&token=" + r.saved["token"])
	r.saved["last_week"], r.saved["in_an_hour"] = lastWeek(time.Now()), strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10)
	for _, steps := range [][]step{coreSteps, operatorSteps, roomSteps, holdSteps, boardSteps, accountSteps, sceneSteps, lastSteps} {
		r.play(steps)
	}
	r.logInByChallenge("guest", "wrong battery")
}

// logInByChallenge logs in by SCRAM-SHA-256, with a wrong password and with the right one.
func (r *runner) logInByChallenge(name, password string) {
	r.t.Helper()
	for _, try := range []step{{status: http.StatusUnauthorized, code: "unauthorized"}, {save: "message=message"}} {
		client, err := scram.SHA256.NewClient(name, password, "")
		if err != nil {
			r.t.Fatal(err)
		}
		conversation := client.NewConversation()
		first, _ := conversation.Step("")
		r.play([]step{{op: "requestChallenge", body: `{"message":"` + first + `"}`, save: "challenge=challenge message=message"}})
		second, err := conversation.Step(r.saved["message"])
		if err != nil {
			r.t.Fatal(err)
		}
		try.op, try.body = "logIn", `{"challenge":"{{challenge}}","message":"`+second+`"}`
		r.play([]step{try})
		password = "battery staple"
	}
}

// lastWeek returns the id of the weekly season before the current one, which begins on Mondays.
func lastWeek(now time.Time) string {
	now = now.UTC()
	monday := now.AddDate(0, 0, -(int(now.Weekday())+6)%7-7)
	return monday.Format("20060102") + "T000000Z"
}

// flood repeats each of the calls until a limit of attempts refuses it.
func (r *runner) flood(steps []step) {
	for _, s := range steps {
		refused := false
		for range 5 * attempts {
			if refused = r.try(&s) == http.StatusTooManyRequests; refused {
				break
			}
		}
		if !refused {
			r.t.Errorf("%s: it is never refused", s.op)
			continue
		}
		s.status, s.code = http.StatusTooManyRequests, "rate_limited"
		r.call(s.op+", once more", &s)
	}
}

// try makes a call and returns its status.
func (r *runner) try(s *step) int {
	resp, err := httpClient.Do(r.request(r.operations[s.op], s))
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// lines is a client on the TCP port.
type lines struct {
	t    *testing.T
	conn net.Conn
	read *bufio.Scanner
}

// dial opens a connection to the TCP port.
func (r *runner) dial() *lines {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.broker.TCP)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	return &lines{r.t, conn, bufio.NewScanner(conn)}
}

// connect connects a client on the TCP port, and waits until it is connected.
func (r *runner) connect(message string) *lines {
	r.t.Helper()
	l := r.dial()
	l.ask(message)
	return l
}

// send sends a message.
func (l *lines) send(message string) {
	l.t.Helper()
	_ = l.conn.SetDeadline(time.Now().Add(timeout))
	if _, err := l.conn.Write([]byte(message + "\n")); err != nil {
		l.t.Fatal(err)
	}
}

// nextText returns the next message from the broker.
func (l *lines) nextText() []byte {
	l.t.Helper()
	_ = l.conn.SetDeadline(time.Now().Add(timeout))
	if !l.read.Scan() {
		l.t.Fatalf("the connection ended: %v", l.read.Err())
	}
	return l.read.Bytes()
}

// next returns the next message from the broker, decoded.
func (l *lines) next() (answer object) {
	l.t.Helper()
	if err := json.Unmarshal(l.nextText(), &answer); err != nil {
		l.t.Fatal(err)
	}
	return answer
}

// ask sends a message and returns the next one from the broker, which must not be an error.
func (l *lines) ask(message string) object {
	l.t.Helper()
	l.send(message)
	answer := l.next()
	if answer["type"] == "error" {
		l.t.Fatalf("%s: %v", message, answer)
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
