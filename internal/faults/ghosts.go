package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"switchboard/client"
)

// ghostCount is the number of clients that disappear with the victim, if the scenario has ghosts.
// Only the lease and the janitor can detect that they are gone.
const (
	ghostCount   = 5
	ghostChannel = "ghosts"
	ghostUser    = "ghost"
	ghostRoom    = "room-0" // has a state, in which the ghosts own fields
)

// ghost is a client of the victim that disappears and never comes back.
type ghost struct {
	cancel context.CancelFunc
	ended  chan struct{}
}

func (g *ghost) stop() {
	g.cancel()
	<-g.ended
}

// ghostSpecs returns the clients that become ghosts.
func (tb *testbed) ghostSpecs() (specs []clientSpec) {
	if tb.scenario.ghosts {
		for i := range ghostCount {
			specs = append(specs, clientSpec{
				client: fmt.Sprintf("%s/ghost-%d", ghostUser, i), user: ghostUser, channels: []string{ghostChannel, ghostRoom}, state: ghostRoom, listener: listener(i % int(socketCount)),
			})
		}
	}
	return specs
}

// connectGhosts connects the ghosts to the victim.
func (tb *testbed) connectGhosts(ctx context.Context, specs []clientSpec) error {
	for _, spec := range specs {
		if err := tb.connectGhost(ctx, spec, tb.victim()); err != nil {
			return err
		}
	}
	for _, b := range tb.brokers { // a broker learns of live servers at its beats
		if err := retry(ctx, func() error {
			n, err := onlineDevices(ctx, b, ghostUser)
			if err == nil && n != len(tb.ghosts) {
				err = fmt.Errorf("%s reports %d ghosts online, want %d", b.name, n, len(tb.ghosts))
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// connectGhost connects a client that uses only this broker.
func (tb *testbed) connectGhost(ctx context.Context, spec clientSpec, to *instance) error {
	c, err := client.New(client.Options{
		URLs: []string{spec.listener.url(spec.listener.address(to))}, Client: spec.client, Token: tokenOf(spec.user),
	})
	if err != nil {
		return err
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	g := &ghost{cancel: cancel, ended: make(chan struct{})}
	tb.ghosts = append(tb.ghosts, g)
	go func() {
		defer close(g.ended)
		_ = c.Run(running)
	}()
	for _, channel := range spec.channels {
		if _, err := c.Subscribe(ctx, channel, client.SubscribeOptions{State: channel == spec.state}); err != nil {
			return fmt.Errorf("%s: %w", spec.client, err)
		}
	}
	if spec.state == "" {
		return nil
	}
	tb.state.ownerStarts(spec.client, spec.state)
	if _, err := c.Update(ctx, spec.state, client.Set(memberField(spec.client), true), client.Own()); err != nil {
		return fmt.Errorf("%s: %w", spec.client, err)
	}
	return nil
}

// awaitGhostsGone stops the ghosts after their broker died, and requires that the other brokers
// report them gone within the bound.
func (tb *testbed) awaitGhostsGone(ctx context.Context) error {
	for _, g := range tb.ghosts {
		g.stop()
	}
	began := time.Now()
	if err := tb.awaitNone(ctx, "ghosts", tb.times.cleanupBound(), func(ctx context.Context) (left int, detail string, err error) {
		for _, b := range tb.survivors() {
			n, err := onlineDevices(ctx, b, ghostUser)
			if err != nil {
				return 0, "", err
			}
			if left = max(left, n); n > 0 {
				detail = fmt.Sprintf("%s reports %d clients online that disappeared with %s", b.name, n, tb.victim().name)
			}
		}
		return left, detail, nil
	}); err != nil {
		return err
	}
	return tb.awaitPresence(ctx, "when the ghosts were gone", tb.times.cleanupBound()-time.Since(began), tb.checkGhostsLeft)
}

// awaitNone calls count until nothing is left, and after the bound records what is left as
// evidence.
func (tb *testbed) awaitNone(ctx context.Context, kind string, bound time.Duration, count func(context.Context) (int, string, error)) error {
	deadline := time.Now().Add(bound)
	for {
		left, detail, err := count(ctx)
		if err == nil && left == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			if err != nil {
				return fmt.Errorf("count %s: %w", kind, err)
			}
			tb.logf("%d %s: %s", left, kind, detail)
			tb.journal.addGhosts(left, detail)
			return nil
		}
		if !pause(ctx, 100*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// addGhosts records n clients or keys that should be gone.
func (j *journal) addGhosts(n int, detail string) {
	j.update(func() {
		j.ghosts += n
		j.evidence.add("ghosts", "%s", detail)
	})
}

var apiClient = http.Client{Timeout: 3 * time.Second}

// onlineDevices returns how many devices of a user a broker reports online.
func onlineDevices(ctx context.Context, b *instance, user string) (n int, err error) {
	var answer struct {
		Online  bool
		Clients []struct{ Online bool }
	}
	if err := callAPI(ctx, b, http.MethodGet, "/v1/users/"+user, nil, &answer); err != nil {
		return 0, err
	}
	for _, c := range answer.Clients {
		if c.Online {
			n++
		}
	}
	if answer.Online && n == 0 { // a user that is still online counts as one device
		n = 1
	}
	return n, nil
}

// onlineUsers returns how many of the users a broker reports online.
func onlineUsers(ctx context.Context, b *instance, users []string) (n int, err error) {
	var answer struct {
		Users []struct{ Online bool }
	}
	if err := callAPI(ctx, b, http.MethodPost, "/v1/users/query", map[string]any{"users": users}, &answer); err != nil {
		return 0, err
	}
	if len(answer.Users) != len(users) {
		return 0, fmt.Errorf("%s knows of %d users, want %d", b.name, len(answer.Users), len(users))
	}
	for _, u := range answer.Users {
		if u.Online {
			n++
		}
	}
	return n, nil
}

func callAPI(ctx context.Context, b *instance, method, path string, body, into any) error {
	var encoded []byte
	if body != nil {
		var err error
		if encoded, err = json.Marshal(body); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+b.http+path, bytes.NewReader(encoded))
	if err != nil {
		return err
	}
	resp, err := apiClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s at %s: %s", method, path, b.name, resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(into)
}
