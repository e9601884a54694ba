package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A vectorStep is one step of a file in docs/vectors. docs/guides/clients.md describes them.
type vectorStep struct {
	App         map[string]json.RawMessage
	Net         string
	NotBeforeMS int `json:"not_before_ms"`
	Out, In     json.RawMessage
	See         map[string]any
}

// TestVectors plays the broker of each vector to a Client: it sends what arrives, and compares what
// the Client sends and what the application sees.
func TestVectors(t *testing.T) {
	files, err := filepath.Glob("../docs/vectors/*.json")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var vector struct{ Steps []json.RawMessage }
		if err := json.Unmarshal(text, &vector); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &vectorPlayer{T: t, conns: make(chan net.Conn), refs: map[float64]float64{}, ended: make(chan struct{})}
				defer p.stop()
				for _, raw := range vector.Steps {
					p.play(raw)
				}
				p.wantSeen()
				p.wantSilence()
			})
		})
	}
}

// A vectorPlayer is the application and the broker of a vector.
type vectorPlayer struct {
	*testing.T
	client *Client
	cancel context.CancelFunc
	ended  chan struct{} // closed when Run has returned

	conns    chan net.Conn // connections that the client opens
	conn     net.Conn
	lines    chan []byte         // what the client sends on conn
	refs     map[float64]float64 // of the vector → of the client
	lostAt   time.Time           // when the last connection ended
	expected []map[string]any    // what the application must have seen since the last step of another kind

	mu   sync.Mutex // guards the field below
	seen []map[string]any
}

func (p *vectorPlayer) play(raw json.RawMessage) {
	p.Helper()
	var step vectorStep
	if err := json.Unmarshal(raw, &step); err != nil {
		p.Fatal(err)
	}
	if step.See != nil {
		p.expected = append(p.expected, step.See)
		return
	}
	if step.Net != "closes" { // the client may end at the message or at the end of the connection
		p.wantSeen()
	}
	switch {
	case step.App != nil:
		p.act(step.App)
	case step.Net == "opens":
		p.accept(time.Duration(step.NotBeforeMS) * time.Millisecond)
	case step.Net != "": // lost, or closed by the broker
		p.lostAt = time.Now()
		_ = p.conn.Close()
	case step.Out != nil:
		p.receive(step.Out)
	case step.In != nil:
		p.wantSilence()
		p.send(step.In)
	}
	synctest.Wait()
}

// accept takes the next connection of the client.
func (p *vectorPlayer) accept(notBefore time.Duration) {
	p.Helper()
	var conn net.Conn
	select {
	case conn = <-p.conns:
	case <-time.After(time.Minute):
		p.Fatal("the client opens no connection")
	}
	if waited := time.Since(p.lostAt); waited < notBefore {
		p.Errorf("the client came back after %v, not before %v", waited, notBefore)
	}
	lines := make(chan []byte, 100)
	p.conn, p.lines = conn, lines
	go func() {
		defer conn.Close()
		for scanner := bufio.NewScanner(conn); scanner.Scan(); {
			lines <- bytes.Clone(scanner.Bytes())
		}
	}()
}

// receive compares the next message of the client. The client chooses the ref, and may say more
// about an attempt to connect.
func (p *vectorPlayer) receive(want json.RawMessage) {
	p.Helper()
	var got, wanted map[string]any
	var line []byte
	select {
	case line = <-p.lines:
	case <-time.After(time.Second):
		p.Fatalf("the client sends nothing, want %s", want)
	}
	if err := errors.Join(json.Unmarshal(line, &got), json.Unmarshal(want, &wanted)); err != nil {
		p.Fatal(err)
	}
	if ref, ok := wanted["ref"].(float64); ok {
		chosen, ok := got["ref"].(float64)
		if before, known := p.refs[ref]; !ok || known && before != chosen {
			p.Errorf("the client sent %s; the ref must be an integer, the same for the same message", line)
		}
		p.refs[ref] = chosen
	}
	for _, free := range []string{"ref", "instance", "attempt"} {
		delete(got, free)
		delete(wanted, free)
	}
	if !reflect.DeepEqual(got, wanted) {
		p.Fatalf("the client sent %s, want %s", line, want)
	}
}

// send sends a message of the broker, with the ref that the client has chosen.
func (p *vectorPlayer) send(message json.RawMessage) {
	p.Helper()
	var members map[string]any
	decoder := json.NewDecoder(bytes.NewReader(message))
	decoder.UseNumber()
	if err := decoder.Decode(&members); err != nil {
		p.Fatal(err)
	}
	if ref, ok := members["ref"].(json.Number); ok {
		shown, _ := ref.Float64()
		members["ref"] = int64(p.refs[shown])
	}
	line, err := json.Marshal(members)
	if err != nil {
		p.Fatal(err)
	}
	if _, err := fmt.Fprintf(p.conn, "%s\n", line); err != nil {
		p.Fatal(err)
	}
}

// wantSilence fails the test if the client has sent what the vector does not show.
func (p *vectorPlayer) wantSilence() {
	p.Helper()
	synctest.Wait()
	select {
	case line := <-p.lines:
		p.Fatalf("the client sent %s, want nothing", line)
	default:
	}
}

// wantSeen compares what the application has seen since the last call, in any order.
func (p *vectorPlayer) wantSeen() {
	p.Helper()
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if got, want := sortedJSON(p.seen), sortedJSON(p.expected); !slices.Equal(got, want) {
		p.Fatalf("the application has seen %s, want %s", got, want)
	}
	p.seen, p.expected = nil, nil
}

func sortedJSON(values []map[string]any) (texts []string) {
	for _, v := range values {
		text, _ := json.Marshal(v)
		var normal any
		_ = json.Unmarshal(text, &normal)
		text, _ = json.Marshal(normal)
		texts = append(texts, string(text))
	}
	slices.Sort(texts)
	return texts
}

func (p *vectorPlayer) see(name string, value any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen, map[string]any{name: value})
}

// act makes a call of the application.
func (p *vectorPlayer) act(step map[string]json.RawMessage) {
	p.Helper()
	text := func(name string) (s string) { _ = json.Unmarshal(step[name], &s); return s }
	switch {
	case step["start"] != nil:
		p.start(step["start"])
	case step["subscribe"] != nil:
		opts := SubscribeOptions{State: step["state"] != nil, Presence: step["presence"] != nil}
		go func() {
			s, err := p.client.Subscribe(p.Context(), text("subscribe"), opts)
			p.result(err, "subscribed", map[string]any{"channel": s.Channel, "id": s.ID}, "subscribe")
		}()
	case step["unsubscribe"] != nil:
		go func() {
			channel := text("unsubscribe")
			p.result(p.client.Unsubscribe(p.Context(), channel), "unsubscribed", channel, "unsubscribe")
		}()
	case step["publish"] != nil:
		var message struct {
			Channel, Key string
			Data         json.RawMessage
		}
		if err := json.Unmarshal(step["publish"], &message); err != nil {
			p.Fatal(err)
		}
		var options []Clause
		if message.Key != "" {
			options = append(options, Key(message.Key))
		}
		go func() {
			id, err := p.client.Publish(p.Context(), message.Channel, message.Data, options...)
			p.result(err, "published", id, "publish")
		}()
	}
}

// result records what a call has returned.
func (p *vectorPlayer) result(err error, name string, value any, call string) {
	refusal, refused := errors.AsType[*Error](err)
	switch {
	case err == nil:
		p.see(name, value)
	case refused:
		p.see("refused", refusal.Code)
	case errors.Is(err, ErrUnknownOutcome):
		p.see("unknown", call)
	}
}

// start makes the client and connects it.
func (p *vectorPlayer) start(raw json.RawMessage) {
	p.Helper()
	var config struct {
		Client, User, Secret string
		Tokens               []string
	}
	if err := json.Unmarshal(raw, &config); err != nil {
		p.Fatal(err)
	}
	opts := Options{
		URLs: []string{"tcp://127.0.0.1:7070"}, Client: config.Client, User: config.User, Secret: config.Secret,
		OnMessage: p.onMessage,
		OnGap:     func(g Gap) { p.see("gap", without(map[string]any{"channel": g.Channel, "after": g.After, "id": g.ID})) },
		OnFields:  func(s Snapshot) { p.see("fields", values(s)) },
		OnState: func(s State) {
			if s.Phase == Connected {
				p.see("connected", s.Client)
			}
		},
		OnPresence: func(e Presence) {
			for name, members := range map[string][]Member{"joined": e.Joined, "left": e.Left} {
				var clients []string
				for _, m := range members {
					clients = append(clients, m.Client)
				}
				if clients != nil {
					p.see(name, clients)
				}
			}
		},
	}
	if tokens := config.Tokens; tokens != nil {
		opts.TokenSource = func(context.Context) (string, error) {
			token := tokens[0]
			tokens = tokens[1:]
			return token, nil
		}
	}
	var err error
	if p.client, err = New(opts); err != nil {
		p.Fatal(err)
	}
	p.client.netDial = func(ctx context.Context, _, _ string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		select {
		case p.conns <- theirs:
			return ours, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	ctx, cancel := context.WithCancel(p.Context())
	p.cancel = cancel
	go func() {
		defer close(p.ended)
		if closed, ok := errors.AsType[*ClosedError](p.client.Run(ctx)); ok {
			p.see("ended", closed.Reason)
		}
	}()
}

func (p *vectorPlayer) onMessage(m Message) {
	seen := map[string]any{"id": m.ID}
	if m.Channel != "" {
		seen["channel"] = m.Channel
	}
	if m.Data != nil {
		seen["data"] = m.Data
	}
	if s, held := p.client.Fields(m.Channel); held {
		seen["fields"] = values(s)
	}
	p.see("message", seen)
}

func (p *vectorPlayer) stop() {
	p.cancel()
	_ = p.conn.Close()
	<-p.ended
}

// values returns the values of fields by name.
func values(s Snapshot) map[string]any {
	list := map[string]any{}
	for name, f := range s.Fields {
		list[name] = f.Value
	}
	return list
}

// without removes an empty channel.
func without(members map[string]any) map[string]any {
	if members["channel"] == "" {
		delete(members, "channel")
	}
	return members
}
