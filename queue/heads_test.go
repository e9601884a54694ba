package queue

import (
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
)

// headsOf returns the ends of a channel and a client, whatever the caller expects of them: the
// expectations only save commands.
func headsOf(t *testing.T, q contract, channel, client string) (c ChannelHead, p ClientHead) {
	t.Helper()
	for i, known := range []ChannelKnown{{}, {Empty: true}, {ID: 1}, {ID: 1, Empty: true}} {
		known.Channel = channel
		heads := q.ChannelHeads(t.Context(), []ChannelKnown{known, {Channel: channel, ID: c.ID}, {Channel: "other", Empty: true}})
		clients := q.ClientHeads(t.Context(), []ClientKnown{
			{client, known.ID, p.Generation, known.Empty}, {client, p.ID, p.Generation, known.Empty}, {Client: "other", Empty: true},
		})
		for _, err := range []error{heads[0].Err, heads[1].Err, heads[2].Err, clients[0].Err, clients[1].Err, clients[2].Err} {
			ok(t, err)
		}
		if i == 0 {
			c, p = heads[0].Value, clients[0].Value
			continue
		}
		equal(t, "head with another expectation", heads[0].Value, c)
		equal(t, "head with the known id", heads[1].Value, c)
		equal(t, "head of a client with another expectation", clients[0].Value, p)
		equal(t, "head of a channel without messages", heads[2].Value, ChannelHead{Empty: true})
		equal(t, "head of a client as known", clients[1].Value, p)
		equal(t, "head of an unknown client", clients[2].Value, ClientHead{})
	}
	return c, p
}

// testHeads checks the newest ids of channels and clients.
func testHeads(t *testing.T, open opener) {
	f := open(t, Options{})
	c, p := headsOf(t, f, "a", "p")
	equal(t, "a new channel", c, ChannelHead{Empty: true})
	equal(t, "an unknown client", p, ClientHead{})

	bound := f.BindClients(t.Context(), []Claim{{Client: "p", Server: "s"}})[0].Value
	_, p = headsOf(t, f, "a", "p")
	equal(t, "a client without messages", p, ClientHead{Generation: bound.Generation})

	pushed, sent := push(t, f, "a", 3), send(t, f, "p", 3)
	c, p = headsOf(t, f, "a", "p")
	equal(t, "a channel", c, ChannelHead{ID: pushed[2]})
	equal(t, "a client", p, ClientHead{sent[2], bound.Generation})

	must(f.Ack(t.Context(), "p", bound.Generation, sent[2]))(t)
	f.expire(t, f.opts.ChannelTTL, f.keys.channel("a"))
	c, p = headsOf(t, f, "a", "p")
	equal(t, "a channel without messages", c, ChannelHead{pushed[2], true})
	equal(t, "a client without messages", p, ClientHead{sent[2], bound.Generation})
}

// TestHeadsOfOtherWriters checks that messages of other writers count, and that malformed ones hide
// none.
func TestHeadsOfOtherWriters(t *testing.T) {
	for name, client := range map[string]redis.UniversalClient{"redis": server.Client(t), "cluster": cluster.Client(t)} {
		t.Run(name, func(t *testing.T) {
			f := overRedis(client, Options{})
			a, p := push(t, f, "a", 1)[0]+1, send(t, f, "p", 1)[0]+1
			ok(t, client.ZAdd(t.Context(), f.keys.channel("a"), redis.Z{Score: float64(a), Member: fmt.Sprint(a, ":1")}).Err())
			ok(t, client.RPush(t.Context(), f.keys.list("p"), fmt.Sprint(p, ":1")).Err())
			head, queue := headsOf(t, f, "a", "p")
			equal(t, "a channel", head.ID, a)
			equal(t, "a client", queue.ID, p)

			ok(t, client.ZAdd(t.Context(), f.keys.channel("a"), redis.Z{Score: 1 << 60, Member: "x"}).Err())
			ok(t, client.RPush(t.Context(), f.keys.list("p"), "x").Err())
			head, queue = headsOf(t, f, "a", "p")
			equal(t, "a channel with a score that is no id", head.ID, a)
			equal(t, "a client with a malformed element", queue.ID, -1)

			ok(t, client.Set(t.Context(), f.keys.channelMeta("b"), "x", 0).Err())
			ok(t, client.Set(t.Context(), f.keys.record("q"), "x", 0).Err())
			heads := f.ChannelHeads(t.Context(), []ChannelKnown{{Channel: "b"}, {Channel: "a"}})
			queues := f.ClientHeads(t.Context(), []ClientKnown{{Client: "q"}, {Client: "p"}})
			if heads[0].Err == nil || queues[0].Err == nil || heads[1].Err != nil || queues[1].Err != nil {
				t.Errorf("errors %v %v %v %v, want one for each record of a wrong type", heads[0].Err, queues[0].Err, heads[1].Err, queues[1].Err)
			}
		})
	}
}

// TestHeadsCost checks the number of commands for queues that are as their readers expect.
func TestHeadsCost(t *testing.T) {
	const n = 128
	client := server.Client(t)
	f := overRedis(client, Options{})
	var channels []ChannelKnown
	var clients []ClientKnown
	for i := range n {
		name := fmt.Sprint(i)
		known := ChannelKnown{Channel: name, Empty: i%2 == 0}
		if !known.Empty {
			known.ID = push(t, f, name, 1)[0]
		}
		channels, clients = append(channels, known), append(clients, ClientKnown{Client: name, Empty: true})
	}
	read := func() {
		for _, o := range f.ChannelHeads(t.Context(), channels) {
			ok(t, o.Err)
		}
		for _, o := range f.ClientHeads(t.Context(), clients) {
			ok(t, o.Err)
		}
	}
	read() // loads the scripts
	ok(t, client.ConfigResetStat(t.Context()).Err())
	read()
	if commands := commandCalls(t, client); commands > 2*n*11/10 {
		t.Errorf("%d commands for %d channels and clients, want about one for each", commands, n)
	}
	ok(t, client.ConfigResetStat(t.Context()).Err())
	send(t, f, "3", 1)
	before := commandCalls(t, client)
	if heads := f.ClientHeads(t.Context(), clients); heads[3].Value.ID == 0 || slices.ContainsFunc(heads, func(o Outcome[ClientHead]) bool { return o.Err != nil }) {
		t.Error("a message that the reader did not expect is not in", heads)
	}
	if commands := commandCalls(t, client) - before; commands > n*13/10 {
		t.Errorf("%d commands for %d clients, of which one has a message; want little more than one for each", commands, n)
	}
}

// commandCalls returns the number of commands since the statistics were reset, with those in
// scripts.
func commandCalls(t *testing.T, client *redis.Client) (commands int) {
	t.Helper()
	info := must(client.InfoMap(t.Context(), "commandstats").Result())(t)
	for _, stats := range info["Commandstats"] {
		var n int
		_, _ = fmt.Sscanf(stats, "calls=%d", &n)
		commands += n
	}
	return commands
}

// comparedQueues returns what the readers of 128 channels and 128 clients know. Half of them have a
// message.
func comparedQueues(t testing.TB, q contract) (channels []ChannelKnown, clients []ClientKnown) {
	for i := range 128 {
		name := fmt.Sprint(i)
		channel, client := ChannelKnown{Channel: name}, ClientKnown{Client: name}
		ok(t, q.BindClients(t.Context(), []Claim{{Client: name, Server: "s"}})[0].Err)
		if i%2 == 0 {
			must(q.AppendChannel(t.Context(), ChannelPush{Channel: name, Data: payload}))(t)
			must(q.AppendClient(t.Context(), ClientPush{Client: name, Data: payload}))(t)
		}
		channels, clients = append(channels, channel), append(clients, client)
	}
	for i, o := range q.ChannelHeads(t.Context(), channels) {
		channels[i].ID, channels[i].Empty = o.Value.ID, o.Value.Empty
	}
	for i, o := range q.ClientHeads(t.Context(), clients) {
		clients[i].ID, clients[i].Generation, clients[i].Empty = o.Value.ID, o.Value.Generation, i%2 != 0
	}
	return channels, clients
}
