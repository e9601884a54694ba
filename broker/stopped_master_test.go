package broker_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"switchboard/broker"
	"switchboard/internal/redispipe"
	"switchboard/internal/redistest"
	"switchboard/internal/redisurl"
	"switchboard/queue"
	"switchboard/registry"
)

// askedQueue is a queue that records which comparisons have no answer yet.
type askedQueue struct {
	*queue.Redis
	mu     sync.Mutex // guards the fields below
	failed []string   // names that were compared in vain
}

func (q *askedQueue) note(name string, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err != nil {
		q.failed = append(q.failed, name)
	}
}

func (q *askedQueue) ChannelHeads(ctx context.Context, known []queue.ChannelKnown) []queue.Outcome[queue.ChannelHead] {
	heads := q.Redis.ChannelHeads(ctx, known)
	for i, o := range heads {
		q.note(known[i].Channel, o.Err)
	}
	return heads
}

func (q *askedQueue) ClientHeads(ctx context.Context, known []queue.ClientKnown) []queue.Outcome[queue.ClientHead] {
	heads := q.Redis.ClientHeads(ctx, known)
	for i, o := range heads {
		q.note(known[i].Client, o.Err)
	}
	return heads
}

// TestComparisonsWithStoppedMaster checks that the queues on the other masters of a Cluster are
// compared before a call to a stopped master has failed, though there are many queues on that one.
func TestComparisonsWithStoppedMaster(t *testing.T) {
	cluster := redistest.StartCluster(t, 3)
	client, watch, err := redisurl.Open(cluster.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	if err := watch.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	pipe := redispipe.New(client, redispipe.Options{Timeout: testTimeout})
	asked := &askedQueue{Redis: queue.NewRedis(pipe, queue.Options{})}
	s := store{registry: registry.NewRedis(pipe, registry.Options{}), queue: asked, shared: true}
	i := start(t, s, func(o *broker.Options) { o.Timing.Beat, o.Store.Master = time.Minute, watch.MasterOf })
	i.awaitReady(t, 200)

	// The client and the channel of a name are on the same master. The stopped one has most of them.
	const healthy, more = 20, 150 // more than one call compares
	stopped := cluster.Masters[0]
	var names []string
	hangs, clients, count := map[string]bool{}, map[string]*testClient{}, map[bool]int{}
	for n := 0; count[true] < more || count[false] < healthy; n++ {
		name := fmt.Sprint("c", n)
		master, _, err := cluster.Of(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		hang := master == stopped
		if !hang && count[false] == healthy {
			continue
		}
		count[hang]++
		p := dialers["tcp"](t, i)
		p.connect(name, "")
		p.subscribe(name)
		names, hangs[name], clients[name] = append(names, name), hang, p
	}
	for _, name := range names { // without hints
		if _, err := s.queue.AppendChannel(t.Context(), queue.ChannelPush{Channel: name, Data: []byte(`"channel"`)}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.queue.AppendClient(t.Context(), queue.ClientPush{Client: name, Data: []byte(`"client"`)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := stopped.Pause(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stopped.Resume() }()
	compared := make(chan error, 1)
	go func() { compared <- i.CompareQueues(context.Background()) }()
	expect := func(hang bool) {
		t.Helper()
		for _, name := range names {
			if hangs[name] == hang {
				p := clients[name]
				data := []string{fmt.Sprint(p.receive()["data"]), fmt.Sprint(p.receive()["data"])}
				if slices.Sort(data); !slices.Equal(data, []string{"channel", "client"}) {
					t.Fatalf("received %v", data)
				}
			}
		}
	}
	expect(false)
	asked.mu.Lock()
	if len(asked.failed) > 0 {
		t.Errorf("the calls to the stopped master have failed before the others have all: %v", asked.failed)
	}
	asked.mu.Unlock()
	if err := stopped.Resume(); err != nil {
		t.Fatal(err)
	}
	expect(true)
	if err := <-compared; err != nil {
		t.Logf("calls to the stopped master failed, and were repeated: %v", err)
	}
}
