package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// perStream is how many messages each stream has: a third of them before the death of
	// a broker, a third around it, and a third when its clients are back.
	perStream = 60
	// again is how often a message is pushed twice, as if the first answer had been lost.
	again = 6
	// attempts bounds how often one push is tried, each time at another broker.
	attempts = 6
)

// payload is the data of every message.
type payload struct {
	Stream string `json:"stream"`
	N      int    `json:"n"` // from 1
	Pad    string `json:"pad,omitempty"`
}

// padding is how many bytes fill up message n: every eighth is too large to travel in a
// hint between brokers, so that it is read from Redis.
func padding(n int) int {
	if n%8 == 0 {
		return 12 << 10
	}
	return 0
}

// stream is a sequence of messages to one target.
type stream struct {
	name   string
	target map[string]any // of the push
	to     []string       // clients
}

// newStreams addresses everyone, all rooms, and some users and clients of all kinds.
func newStreams(cast []member) []stream {
	everyone := stream{name: "everyone", target: map[string]any{"all": true}}
	inRoom := map[string][]string{}
	ofUser := map[string][]string{}
	var single []stream
	for i, m := range cast {
		everyone.to = append(everyone.to, m.Client)
		ofUser[m.User] = append(ofUser[m.User], m.Client)
		for _, room := range m.Channels {
			inRoom[room] = append(inRoom[room], m.Client)
		}
		if i%13 == 0 || m.kind == page {
			single = append(single, stream{"only " + m.Client, map[string]any{"client": m.Client}, []string{m.Client}})
		}
	}
	streams := append(single, everyone)
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

// backend pushes all streams, each in order, side by side.
type backend struct {
	brokers []*instance
	ledger  *ledger
	http    http.Client

	next       atomic.Uint32 // broker to begin with
	repeated   atomic.Int64  // attempts that failed, so that another one was made
	unanswered atomic.Int64  // pushes that had been accepted when their attempt failed
	resume     chan struct{} // closed when the last third may go
}

func newBackend(brokers []*instance, l *ledger) *backend {
	return &backend{
		brokers: brokers, ledger: l, http: http.Client{Timeout: 5 * time.Second},
		resume: make(chan struct{}),
	}
}

// run pushes everything and returns when all is accepted, or something is wrong.
func (b *backend) run(ctx context.Context, streams []stream) {
	defer b.http.CloseIdleConnections()
	var all sync.WaitGroup
	for _, s := range streams {
		all.Go(func() {
			for n := 1; n <= perStream; n++ {
				if n > perStream*2/3 {
					select {
					case <-b.resume:
					case <-ctx.Done():
						return
					}
				}
				if err := b.deliver(ctx, s, n); err != nil {
					b.ledger.complain("push %d of %s: %v", n, s.name, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// deliver pushes message n of a stream until it is accepted.
func (b *backend) deliver(ctx context.Context, s stream, n int) error {
	ids, duplicate, err := b.push(ctx, s, n)
	if duplicate {
		b.unanswered.Add(1)
	}
	if err == nil && n%again == 0 {
		var more map[string]int64
		more, duplicate, err = b.push(ctx, s, n)
		if err == nil && (!duplicate || fmt.Sprint(more) != fmt.Sprint(ids)) {
			err = fmt.Errorf("pushed again it gave %v (duplicate: %t), before %v", more, duplicate, ids)
		}
	}
	if err != nil {
		return err
	}
	if len(ids) != len(s.to) {
		return fmt.Errorf("it went to %d clients, want %d: %v", len(ids), len(s.to), ids)
	}
	b.ledger.accept(s.name, n, ids)
	return nil
}

// push gives the id that each addressee will see. A broker that fails is not asked again
// for this message: the next one is, with the same key.
func (b *backend) push(ctx context.Context, s stream, n int) (ids map[string]int64, duplicate bool, err error) {
	body := map[string]any{
		"data": payload{s.name, n, strings.Repeat("x", padding(n))},
		"key":  fmt.Sprintf("%s/%d", strings.ReplaceAll(s.name, " ", "-"), n),
	}
	for k, v := range s.target {
		body[k] = v
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		return nil, false, err
	}
	first := int(b.next.Add(1))
	for attempt := range attempts {
		var r pushResult
		if r, err = b.post(ctx, b.brokers[(first+attempt)%len(b.brokers)], encoded); err == nil {
			return r.ids(s), r.Duplicate, nil
		}
		b.repeated.Add(1)
	}
	return nil, false, err
}

// pushResult is what the story needs of the answer to a push.
type pushResult struct {
	ID        int64
	Duplicate bool
	Clients   []struct {
		Client string
		ID     int64
	}
}

// ids are the ids by client: one for all of a channel, or each client's own.
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

// post asks one broker.
func (b *backend) post(ctx context.Context, broker *instance, body []byte) (pushResult, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+broker.http+"/v1/push", bytes.NewReader(body))
	if err != nil {
		return pushResult{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := b.http.Do(req)
	if err != nil {
		return pushResult{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return pushResult{}, err
	}
	var answer struct{ Results []pushResult }
	if err := json.Unmarshal(text, &answer); err != nil || resp.StatusCode != http.StatusOK || len(answer.Results) != 1 {
		return pushResult{}, fmt.Errorf("%s: %s: %.300s", broker.Name, resp.Status, text)
	}
	return answer.Results[0], nil
}
