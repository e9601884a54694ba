//go:build long

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"switchboard/internal/testbed"
)

const (
	// perStream is the number of messages of each stream. The broker is killed after about a third of
	// them. The last third is pushed when its clients have resumed.
	perStream = 60
	// One of repeatEvery messages is pushed twice, as if the first response had been lost.
	repeatEvery = 6
	// attempts is the largest number of attempts of one push. Each goes to another broker.
	attempts = 6
)

// A payload is the data of a message.
type payload struct {
	Stream string `json:"stream"`
	N      int    `json:"n"` // from 1
	Pad    string `json:"pad,omitempty"`
}

// padding returns the number of padding bytes of message n. Every eighth message is too large for a
// hint between brokers, so brokers read it from Redis.
func padding(n int) int {
	if n%8 == 0 {
		return 12 << 10
	}
	return 0
}

// A stream is a sequence of messages to one target.
type stream struct {
	name   string
	target map[string]any // of the push
	to     []string       // clients
}

// newStreams returns streams to all clients, to all rooms, and to some users and clients of all
// kinds.
func newStreams(plans []clientPlan) []stream {
	all := stream{name: "all", target: map[string]any{"all": true}}
	inRoom := map[string][]string{}
	ofUser := map[string][]string{}
	var single []stream
	for i, plan := range plans {
		all.to = append(all.to, plan.Client)
		ofUser[plan.User] = append(ofUser[plan.User], plan.Client)
		for _, room := range plan.Channels {
			inRoom[room] = append(inRoom[room], plan.Client)
		}
		if i%13 == 0 || plan.kind == page {
			single = append(single, stream{"only " + plan.Client, map[string]any{"client": plan.Client}, []string{plan.Client}})
		}
	}
	streams := append(single, all)
	for i := range rooms {
		room := roomOf(i)
		streams = append(streams, stream{room, map[string]any{"channel": room}, inRoom[room]})
	}
	for i := range 20 {
		user := userOf(1 + 4*i)
		streams = append(streams, stream{user, map[string]any{"user": user}, ofUser[user]})
	}
	return streams
}

// A pusher pushes all streams in parallel, each in order.
type pusher struct {
	brokers []*testbed.Broker
	ledger  *ledger

	next           atomic.Uint32 // index of the next broker to try
	failedAttempts atomic.Int64
	storedAttempts atomic.Int64  // failed attempts that stored their message
	lastThird      chan struct{} // closed before the last third of each stream
}

func newPusher(brokers []*testbed.Broker, l *ledger) *pusher {
	return &pusher{
		brokers: brokers, ledger: l, lastThird: make(chan struct{}),
	}
}

// run pushes all streams. It returns when all messages are accepted, or after a failure.
func (p *pusher) run(ctx context.Context, streams []stream) {
	var all sync.WaitGroup
	for _, s := range streams {
		all.Go(func() {
			for n := 1; n <= perStream; n++ {
				if n > perStream*2/3 {
					select {
					case <-p.lastThird:
					case <-ctx.Done():
						return
					}
				}
				if err := p.deliver(ctx, s, n); err != nil {
					p.ledger.fail("push %d of %s: %v", n, s.name, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// deliver pushes message n of a stream and records the ids. It repeats some pushes.
func (p *pusher) deliver(ctx context.Context, s stream, n int) error {
	ids, duplicate, err := p.push(ctx, s, n)
	if duplicate {
		p.storedAttempts.Add(1)
	}
	if err == nil && n%repeatEvery == 0 {
		var more map[string]int64
		more, duplicate, err = p.push(ctx, s, n)
		if err == nil && (!duplicate || fmt.Sprint(more) != fmt.Sprint(ids)) {
			err = fmt.Errorf("repeated push: %v (duplicate: %t), first: %v", more, duplicate, ids)
		}
	}
	if err != nil {
		return err
	}
	if len(ids) != len(s.to) {
		return fmt.Errorf("pushed to %d clients, want %d: %v", len(ids), len(s.to), ids)
	}
	p.ledger.accept(s.name, n, ids)
	return nil
}

// push returns the message id of each client. If a broker fails, it tries the next one with the
// same key.
func (p *pusher) push(ctx context.Context, s stream, n int) (ids map[string]int64, duplicate bool, err error) {
	body := map[string]any{
		"data": payload{s.name, n, strings.Repeat("x", padding(n))},
		"key":  fmt.Sprintf("%s/%d", strings.ReplaceAll(s.name, " ", "-"), n),
	}
	for k, v := range s.target {
		body[k] = v
	}
	first := int(p.next.Add(1))
	for attempt := range attempts {
		var r pushResult
		if r, err = p.post(ctx, p.brokers[(first+attempt)%len(p.brokers)], body); err == nil {
			return r.ids(s), r.Duplicate, nil
		}
		p.failedAttempts.Add(1)
	}
	return nil, false, err
}

// A pushResult is the part of a push response that the test needs.
type pushResult struct {
	ID        int64
	Duplicate bool
	Clients   []struct {
		Client string
		ID     int64
	}
}

// ids returns the id for each client. Messages to a channel have one id for all clients.
func (r pushResult) ids(s stream) map[string]int64 {
	ids := map[string]int64{}
	if r.ID != 0 {
		for _, client := range s.to {
			ids[client] = r.ID
		}
	}
	for _, c := range r.Clients {
		ids[c.Client] = c.ID
	}
	return ids
}

// post sends a push to one broker.
func (p *pusher) post(ctx context.Context, broker *testbed.Broker, body any) (pushResult, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var answer struct{ Results []pushResult }
	err := broker.Call(ctx, http.MethodPost, "/v1/push", body, &answer)
	if err == nil && len(answer.Results) != 1 {
		err = fmt.Errorf("%s: %d results", broker.Name, len(answer.Results))
	}
	if err != nil {
		return pushResult{}, err
	}
	return answer.Results[0], nil
}
