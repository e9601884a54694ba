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

// ghostCount is how many clients die with the victim, where the scenario has them: nobody
// but lease and janitor will say that they are gone.
const (
	ghostCount = 5
	ghostTown  = "ghost-town"
	ghostUser  = "ghost"
)

// ghost is a client of the victim that vanishes and never comes back.
type ghost struct {
	leave context.CancelFunc
	ended chan struct{}
}

func (g *ghost) vanish() {
	g.leave()
	<-g.ended
}

// cursed are those that will be ghosts.
func (s *stage) cursed() (cast []member) {
	if s.scenario.ghosts {
		for i := range ghostCount {
			cast = append(cast, member{
				client: fmt.Sprintf("%s/ghost-%d", ghostUser, i), user: ghostUser, channels: []string{ghostTown}, knock: knock(i % int(knocks)),
			})
		}
	}
	return cast
}

// haunt connects the ghosts to the victim.
func (s *stage) haunt(ctx context.Context) error {
	for _, m := range s.cursed() {
		if err := s.summon(ctx, m, s.victim()); err != nil {
			return err
		}
	}
	for _, b := range s.brokers { // who is alive, a broker knows as of its last beat
		if err := retry(ctx, func() error {
			n, err := onlineDevices(ctx, b, ghostUser)
			if err == nil && n != len(s.ghosts) {
				err = fmt.Errorf("%s says that %d ghosts are online while %d are", b.name, n, len(s.ghosts))
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// summon connects a client that goes to this broker and to no other.
func (s *stage) summon(ctx context.Context, m member, to *instance) error {
	c, err := client.New(client.Options{URLs: []string{m.knock.url(m.knock.addr(to))}, Client: m.client, User: m.user})
	if err != nil {
		return err
	}
	running, leave := context.WithCancel(context.WithoutCancel(ctx))
	g := &ghost{leave: leave, ended: make(chan struct{})}
	s.ghosts = append(s.ghosts, g)
	go func() {
		defer close(g.ended)
		_ = c.Run(running)
	}()
	if _, err := c.Subscribe(ctx, m.channels[0], client.SubscribeOptions{}); err != nil {
		return fmt.Errorf("%s: %w", m.client, err)
	}
	return nil
}

// exorcise has the ghosts vanish with their broker, and demands that the others say so
// within the bound.
func (s *stage) exorcise(ctx context.Context) error {
	for _, g := range s.ghosts {
		g.vanish()
	}
	began := time.Now()
	if err := s.within(ctx, "ghosts", s.times.bound(), func(ctx context.Context) (left int, what string, err error) {
		for _, b := range s.survivors() {
			n, err := onlineDevices(ctx, b, ghostUser)
			if err != nil {
				return 0, "", err
			}
			if left = max(left, n); n > 0 {
				what = fmt.Sprintf("%s says that %d clients are online that died with %s", b.name, n, s.victim().name)
			}
		}
		return left, what, nil
	}); err != nil {
		return err
	}
	return s.attend(ctx, "when the ghosts were gone", s.times.bound()-time.Since(began), s.untold)
}

// within asks again and again until nothing is left, and after the bound enters what is
// still there as evidence.
func (s *stage) within(ctx context.Context, kind string, bound time.Duration, look func(context.Context) (int, string, error)) error {
	deadline := time.Now().Add(bound)
	for {
		left, what, err := look(ctx)
		if err == nil && left == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			if err != nil {
				return fmt.Errorf("look for %s: %w", kind, err)
			}
			s.say("%d %s: %s", left, kind, what)
			s.book.haunted(left, what)
			return nil
		}
		if !pause(ctx, 100*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// haunted enters what should be gone.
func (b *book) haunted(n int, what string) {
	b.mark(func() {
		b.ghosts += n
		b.evidence.add("ghosts", "%s", what)
	})
}

var api = http.Client{Timeout: 3 * time.Second}

// onlineDevices is how many devices of a user are online, if one believes a broker.
func onlineDevices(ctx context.Context, b *instance, user string) (n int, err error) {
	var answer struct {
		Online  bool
		Clients []struct{ Online bool }
	}
	if err := ask(ctx, b, http.MethodGet, "/v1/users/"+user, nil, &answer); err != nil {
		return 0, err
	}
	for _, c := range answer.Clients {
		if c.Online {
			n++
		}
	}
	if answer.Online && n == 0 {
		n = 1
	}
	return n, nil
}

// onlineUsers is how many of the users are online, if one believes a broker.
func onlineUsers(ctx context.Context, b *instance, users []string) (n int, err error) {
	var answer struct {
		Users []struct{ Online bool }
	}
	if err := ask(ctx, b, http.MethodPost, "/v1/users/query", map[string]any{"users": users}, &answer); err != nil {
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

func ask(ctx context.Context, b *instance, method, path string, body, into any) error {
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
	resp, err := api.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s at %s: %s", method, path, b.name, resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(into)
}
