package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"switchboard/client"
	"switchboard/internal/await"
	"switchboard/internal/testbed"
)

// ghostCount is the number of clients that disappear with the victim, if the scenario has ghosts.
// Only the lease and the janitor can detect that they are gone.
const (
	ghostCount   = 5
	ghostChannel = "ghosts"
	ghostUser    = "ghost"
	ghostRoom    = "room-0" // has a state, in which the ghosts own fields
)

// ghostSpecs returns the clients that become ghosts.
func (tb *bed) ghostSpecs() (specs []clientSpec) {
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
func (tb *bed) connectGhosts(ctx context.Context, specs []clientSpec) error {
	for _, spec := range specs {
		if err := tb.connectGhost(ctx, spec, tb.victim()); err != nil {
			return err
		}
	}
	for _, b := range tb.brokers { // a broker learns of live servers at its beats
		if err := await.Success(ctx, func() error {
			n, err := onlineDevices(ctx, b, ghostUser)
			if err == nil && n != len(tb.ghosts) {
				err = fmt.Errorf("%s reports %d ghosts online, want %d", b.Name, n, len(tb.ghosts))
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// connectGhost connects a client that uses only this broker.
func (tb *bed) connectGhost(ctx context.Context, spec clientSpec, to *testbed.Broker) error {
	c, err := testbed.Connect(ctx, client.Options{
		URLs: []string{spec.listener.url(spec.listener.address(to))}, Client: spec.client, Token: tokenOf(spec.user),
	})
	if err != nil {
		return err
	}
	tb.ghosts = append(tb.ghosts, c)
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
func (tb *bed) awaitGhostsGone(ctx context.Context) error {
	for _, g := range tb.ghosts {
		_ = g.Stop()
	}
	began := time.Now()
	if err := tb.awaitNone(ctx, "ghosts", tb.times.cleanupBound(), func(ctx context.Context) (left int, detail string, err error) {
		for _, b := range tb.survivors() {
			n, err := onlineDevices(ctx, b, ghostUser)
			if err != nil {
				return 0, "", err
			}
			if left = max(left, n); n > 0 {
				detail = fmt.Sprintf("%s reports %d clients online that disappeared with %s", b.Name, n, tb.victim().Name)
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
func (tb *bed) awaitNone(ctx context.Context, kind string, bound time.Duration, count func(context.Context) (int, string, error)) error {
	var left int
	var detail string
	err := within(ctx, bound, 100*time.Millisecond, func() (err error) {
		if left, detail, err = count(ctx); err == nil && left > 0 {
			err = errNotYet
		}
		return err
	})
	switch {
	case errors.Is(err, errNotYet):
		tb.logf("%d %s: %s", left, kind, detail)
		tb.journal.addGhosts(left, detail)
		return nil
	case err != nil:
		return fmt.Errorf("count %s: %w", kind, err)
	}
	return nil
}

// addGhosts records n clients or keys that should be gone.
func (j *journal) addGhosts(n int, detail string) {
	j.update(func() {
		j.ghosts += n
		j.evidence.add("ghosts", "%s", detail)
	})
}

// apiTimeout limits a call of a check.
const apiTimeout = 3 * time.Second

// onlineDevices returns how many devices of a user a broker reports online.
func onlineDevices(ctx context.Context, b *testbed.Broker, user string) (n int, err error) {
	var answer struct {
		Online  bool
		Clients []struct{ Online bool }
	}
	if err := b.Call(ctx, http.MethodGet, "/v1/users/"+user, nil, &answer); err != nil {
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
func onlineUsers(ctx context.Context, b *testbed.Broker, users []string) (n int, err error) {
	var answer struct {
		Users []struct{ Online bool }
	}
	if err := b.Call(ctx, http.MethodPost, "/v1/users/query", map[string]any{"users": users}, &answer); err != nil {
		return 0, err
	}
	if len(answer.Users) != len(users) {
		return 0, fmt.Errorf("%s knows of %d users, want %d", b.Name, len(answer.Users), len(users))
	}
	for _, u := range answer.Users {
		if u.Online {
			n++
		}
	}
	return n, nil
}
