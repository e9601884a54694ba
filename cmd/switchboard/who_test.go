package main

import (
	"context"
	"strings"
	"testing"

	"switchboard/client"
)

// connect connects a client that subscribes to a channel, until the end of the test.
func (b broker) connect(t *testing.T, o client.Options, channel string) *client.Client {
	t.Helper()
	c, stop := b.run(t, o)
	t.Cleanup(stop)
	if _, err := c.Subscribe(t.Context(), channel, client.SubscribeOptions{}); err != nil {
		t.Fatal(err)
	}
	return c
}

// once connects a client and disconnects it, so that the store knows it.
func (b broker) once(t *testing.T, user, name string) {
	t.Helper()
	c, stop := b.run(t, client.Options{User: user, Client: name})
	defer stop()
	if err := c.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// run runs a client until stop is called.
func (b broker) run(t *testing.T, o client.Options) (c *client.Client, stop func()) {
	t.Helper()
	o.URLs = []string{"ws" + strings.TrimPrefix(b.url, "http") + "/ws"}
	c, err := client.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = c.Run(ctx) }()
	return c, func() { cancel(); <-ended }
}

func TestWho(t *testing.T) {
	b := startBroker(t, nil)
	b.connect(t, client.Options{User: "alice", Client: "phone"}, "news")
	b.connect(t, client.Options{User: "bob", Client: "tab"}, "news")
	if out := b.ok(t, "who"); out != "alice\t1\talice/phone\nbob\t1\tbob/tab\n" {
		t.Errorf("%q", out)
	}
	if out := b.ok(t, "who", "alice"); !strings.HasPrefix(out, "alice/phone\tonline\t") || strings.Count(out, "\n") != 1 {
		t.Errorf("%q", out)
	}
	if r := b.cli(t, "who", "carol"); r.Code != 0 || r.Stdout != "" || !strings.Contains(r.Stderr, "no devices") {
		t.Errorf("%+v", r)
	}
	if r := b.cli(t, "who", "alice/phone"); r.Code != 0 || !strings.Contains(r.Stderr, "switchboard who --client alice/phone\n") {
		t.Errorf("%+v", r)
	}
	out := b.ok(t, "who", "--channel", "news")
	if !strings.Contains(out, "alice/phone\talice\t") || strings.Count(out, "\n") != 2 {
		t.Errorf("%q", out)
	}
	if r := b.cli(t, "who", "--channel", "news", "--limit=1"); r.Code != 0 || strings.Count(r.Stdout, "\n") != 1 || !strings.Contains(r.Stderr, "the first 1 of 2") {
		t.Errorf("%+v", r)
	}
	if out := b.ok(t, "who", "--client", "alice/phone"); !strings.Contains(out, "user\talice\n") || !strings.Contains(out, "channels\tnews\n") {
		t.Errorf("%q", out)
	}
	if r := b.cli(t, "who", "--client", "carol/tab"); r.Code != exitNotFound {
		t.Errorf("%+v", r)
	}
	type presence struct {
		Count   int
		Clients []struct{ Client string }
	}
	if p := asJSON[presence](t, b, "who", "--channel", "news"); p.Count != 2 || len(p.Clients) != 2 {
		t.Errorf("%+v", p)
	}
}
