package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// publishers is a set of goroutines that push. Each takes a channel from jobs, pushes one message
// to it, records the message's id, and takes the next.
type publishers struct {
	url      string
	names    []string // of the channels
	bodies   [][]byte // by channel
	client   http.Client
	onAnswer func() // called after each answer
	cancel   context.CancelFunc

	jobs     chan int // channel indexes; sending never blocks
	answered atomic.Int64
	running  sync.WaitGroup

	mu  sync.Mutex // guards the fields below
	ids [][]int64  // by channel
	err error      // the first error
}

// newPublishers starts o.publishers goroutines. close ends them.
func newPublishers(ctx context.Context, o options, addr string, wake func()) (*publishers, error) {
	names := o.channelNames()
	p := &publishers{
		url: "http://" + addr + "/v1/push", names: names, ids: make([][]int64, len(names)), onAnswer: wake,
		client: http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: o.publishers}},
		jobs:   make(chan int, o.messages),
	}
	data := json.RawMessage(payload(o.size))
	for _, name := range names {
		body, err := json.Marshal(map[string]any{"channel": name, "data": data})
		if err != nil {
			return nil, err
		}
		p.bodies = append(p.bodies, body)
	}
	ctx, p.cancel = context.WithCancel(ctx)
	for range o.publishers {
		p.running.Go(func() { p.run(ctx) })
	}
	return p, nil
}

func (p *publishers) run(ctx context.Context) {
	for channel := range p.jobs {
		id, err := p.push(ctx, channel)
		p.mu.Lock()
		if err == nil {
			p.ids[channel] = append(p.ids[channel], id)
		} else if p.err == nil {
			p.err = fmt.Errorf("push to %s: %w", p.names[channel], err)
		}
		p.mu.Unlock()
		p.answered.Add(1)
		p.onAnswer()
	}
}

// push pushes one message and returns its id.
func (p *publishers) push(ctx context.Context, channel int) (int64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(p.bodies[channel]))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := p.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return 0, err
	}
	var answer struct {
		Results []struct {
			ID int64 `json:"id"`
		} `json:"results"`
	}
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: %.300s", resp.Status, body)
	}
	if err := json.Unmarshal(body, &answer); err != nil || len(answer.Results) != 1 || answer.Results[0].ID == 0 {
		return 0, fmt.Errorf("the answer has no id: %.300s", body)
	}
	return answer.Results[0].ID, nil
}

// failed returns the first error so far.
func (p *publishers) failed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// pushed returns the ids by channel. Call it while no push is in progress.
func (p *publishers) pushed() [][]int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ids
}

// close cancels outstanding pushes and ends the publishers. Do not send jobs afterwards.
func (p *publishers) close() {
	p.cancel()
	close(p.jobs)
	p.running.Wait()
	p.client.CloseIdleConnections()
}
