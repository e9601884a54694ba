package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/keytable"
)

// remains looks for what is left when all clients have left, first with the brokers still
// there, then without them.
func (s *stage) remains(ctx context.Context, cast []member) error {
	if err := s.within(ctx, "ghosts", s.times.bound(), func(ctx context.Context) (int, string, error) {
		return s.stillOnline(ctx, cast)
	}); err != nil {
		return err
	}
	for _, b := range s.brokers {
		if err := b.proc.End(ctx, syscall.SIGTERM); err != nil {
			return err
		}
	}
	if err := s.within(ctx, "ghosts", s.times.bound(), func(ctx context.Context) (int, string, error) {
		return countKeys(keytable.Emptied(ctx, s.store.client, keytable.OfServers))
	}); err != nil {
		return err
	}
	if _, err := keytable.Check(ctx, s.store.client); err != nil {
		s.book.haunted(1, err.Error())
	}
	return nil
}

// countKeys takes every objection for one.
func countKeys(err error) (int, string, error) {
	if err == nil {
		return 0, "", nil
	}
	if _, redisSaid := errors.AsType[redis.Error](err); redisSaid {
		return 0, "", err
	}
	return strings.Count(err.Error(), "\n") + 1, err.Error(), nil
}

// stillOnline counts who is online although everybody has left, by what each broker says
// and by what Redis holds.
func (s *stage) stillOnline(ctx context.Context, cast []member) (left int, what string, err error) {
	var users []string
	for _, m := range cast {
		users = append(users, m.user)
	}
	slices.Sort(users)
	users = slices.Compact(users)
	for _, b := range s.brokers {
		n, err := onlineUsers(ctx, b, users)
		if err != nil {
			return 0, "", err
		}
		if left += n; n > 0 {
			what = fmt.Sprintf("%s says that %d users are online when all have left", b.name, n)
		}
	}
	if left > 0 {
		return left, what, nil // the rest would say the same at length
	}
	for _, user := range users {
		for _, b := range s.brokers {
			n, err := onlineDevices(ctx, b, user)
			if err != nil || n > 0 {
				return n, fmt.Sprintf("%s says that %s has %d devices online when all have left", b.name, user, n), err
			}
		}
	}
	return s.stillBound(ctx, cast)
}

// stillBound counts bindings in Redis.
func (s *stage) stillBound(ctx context.Context, cast []member) (left int, what string, err error) {
	cast = append(slices.Clone(cast), s.cursed()...)
	found := func(format string, args ...any) {
		left++
		what = fmt.Sprintf(format, args...)
	}
	for _, m := range cast {
		server, err := s.store.client.HGet(ctx, "c_{"+m.client+"}", "server").Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return 0, "", err
		}
		if server != "" {
			found("client %s is still bound to %s", m.client, server)
		}
		at, err := s.store.client.HGet(ctx, "u_{"+m.user+"}", m.client).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return 0, "", err
		}
		if at != "" && !strings.HasPrefix(at, ":") {
			found("user %s still has client %s at %s", m.user, m.client, at)
		}
		for _, channel := range m.channels {
			n, err := s.store.client.Exists(ctx, "ch_{"+channel+"}").Result()
			if err != nil {
				return 0, "", err
			}
			if n > 0 {
				found("channel %s is still bound", channel)
			}
		}
	}
	return left, what, nil
}
