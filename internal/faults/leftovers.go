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

// checkLeftovers looks for state that remains after all clients have left, first while the brokers
// run, then after they have ended.
func (tb *bed) checkLeftovers(ctx context.Context, specs []clientSpec) error {
	if err := tb.awaitNone(ctx, "ghosts", tb.times.cleanupBound(), func(ctx context.Context) (int, string, error) {
		return tb.stillOnline(ctx, specs)
	}); err != nil {
		return err
	}
	for _, b := range tb.brokers {
		if err := b.End(ctx, syscall.SIGTERM); err != nil {
			return err
		}
	}
	if err := tb.awaitNone(ctx, "ghosts", tb.times.cleanupBound(), func(ctx context.Context) (int, string, error) {
		return countLines(keytable.CheckEmpty(ctx, tb.store.client, keytable.OwnedByServers))
	}); err != nil {
		return err
	}
	if _, err := keytable.Check(ctx, tb.store.client); err != nil {
		tb.journal.addGhosts(1, err.Error())
	}
	return nil
}

// countLines counts each line of an error as one finding. Errors of Redis are returned as errors.
func countLines(err error) (int, string, error) {
	if err == nil {
		return 0, "", nil
	}
	if _, isRedisError := errors.AsType[redis.Error](err); isRedisError {
		return 0, "", err
	}
	return strings.Count(err.Error(), "\n") + 1, err.Error(), nil
}

// stillOnline counts the users and devices that a broker or Redis reports online after all clients
// have left.
func (tb *bed) stillOnline(ctx context.Context, specs []clientSpec) (left int, detail string, err error) {
	var users []string
	for _, m := range specs {
		users = append(users, m.user)
	}
	slices.Sort(users)
	users = slices.Compact(users)
	for _, b := range tb.brokers {
		n, err := onlineUsers(ctx, b, users)
		if err != nil {
			return 0, "", err
		}
		if left += n; n > 0 {
			detail = fmt.Sprintf("%s reports %d users online after all have left", b.Name, n)
		}
	}
	if left > 0 {
		return left, detail, nil // the devices would repeat the same
	}
	for _, user := range users {
		for _, b := range tb.brokers {
			n, err := onlineDevices(ctx, b, user)
			if err != nil || n > 0 {
				return n, fmt.Sprintf("%s reports that %s has %d devices online after all have left", b.Name, user, n), err
			}
		}
	}
	return tb.stillBound(ctx, specs)
}

// stillBound counts the bindings in Redis.
func (tb *bed) stillBound(ctx context.Context, specs []clientSpec) (left int, detail string, err error) {
	specs = append(slices.Clone(specs), tb.ghostSpecs()...)
	found := func(format string, args ...any) {
		left++
		detail = fmt.Sprintf(format, args...)
	}
	for _, m := range specs {
		server, err := tb.store.client.HGet(ctx, "c_{"+m.client+"}", "server").Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return 0, "", err
		}
		if server != "" {
			found("client %s is still bound to %s", m.client, server)
		}
		at, err := tb.store.client.HGet(ctx, "u_{"+m.user+"}", m.client).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return 0, "", err
		}
		if at != "" && !strings.HasPrefix(at, ":") {
			found("user %s still has client %s at %s", m.user, m.client, at)
		}
		for _, channel := range m.channels {
			n, err := tb.store.client.Exists(ctx, "ch_{"+channel+"}").Result()
			if err != nil {
				return 0, "", err
			}
			if n > 0 {
				found("channel %s is still bound", channel)
			}
		}
	}
	return left, detail, nil
}
