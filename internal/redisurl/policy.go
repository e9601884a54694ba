package redisurl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

var (
	// ErrEvicts is returned for a Redis that throws keys away when its memory is full:
	// messages that were accepted would be gone without a trace.
	ErrEvicts = errors.New("redis evicts keys")
	// ErrPolicyUnknown is returned for a Redis that does not tell what it does when its
	// memory is full, as some managed services do: worth a warning, no reason to stop.
	ErrPolicyUnknown = errors.New("redis does not tell its maxmemory-policy")
)

// CheckPolicy is nil when no master evicts, ErrEvicts when one does, ErrPolicyUnknown
// when one does not tell. Without a maxmemory nothing is evicted today, and still
// ErrEvicts is returned: maxmemory is changed at run time, with nobody asking us.
func CheckPolicy(ctx context.Context, client redis.UniversalClient) error {
	var mu sync.Mutex
	var unknown error // kept aside: another master may evict
	err := eachMaster(ctx, client, func(ctx context.Context, node *redis.Client) error {
		err := checkPolicy(ctx, node)
		if errors.Is(err, ErrPolicyUnknown) {
			mu.Lock()
			defer mu.Unlock()
			unknown = err
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	return unknown
}

func checkPolicy(ctx context.Context, node *redis.Client) error {
	policy, err := policyOf(ctx, node)
	switch {
	case err != nil:
		return fmt.Errorf("maxmemory-policy of %s: %w", name(node), err)
	case policy != "noeviction":
		return fmt.Errorf("%w: maxmemory-policy of %s is %s, set it to noeviction", ErrEvicts, name(node), policy)
	}
	return nil
}

// name is the node's address, except that a client over Sentinels has none of its own.
func name(node *redis.Client) string {
	if addr := node.Options().Addr; strings.Contains(addr, ":") {
		return addr
	}
	return "the master"
}

// policyOf asks INFO first, which managed services leave open more often than CONFIG.
func policyOf(ctx context.Context, node *redis.Client) (string, error) {
	info, err := node.Info(ctx, "memory").Result()
	if policy := infoField(info, "maxmemory_policy"); err == nil && policy != "" {
		return policy, nil
	}
	config, err := node.ConfigGet(ctx, "maxmemory-policy").Result()
	if policy := config["maxmemory-policy"]; err == nil && policy != "" {
		return policy, nil
	}
	if _, answered := errors.AsType[redis.Error](err); err == nil || answered {
		return "", ErrPolicyUnknown
	}
	return "", err
}
