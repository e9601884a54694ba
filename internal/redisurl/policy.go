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
	// ErrEvicts is returned for a Redis that evicts keys when its memory is full: accepted messages
	// would be lost without notice.
	ErrEvicts = errors.New("redis evicts keys")
	// ErrPolicyUnknown is returned for a Redis that does not reveal its maxmemory-policy, like some
	// managed services. The caller should warn and continue.
	ErrPolicyUnknown = errors.New("redis does not reveal its maxmemory-policy")
)

// CheckPolicy returns ErrEvicts if a master evicts keys, else ErrPolicyUnknown if a master does not
// reveal its policy, else nil. A Redis without maxmemory evicts nothing, but CheckPolicy returns
// ErrEvicts all the same: maxmemory may be set at run time.
func CheckPolicy(ctx context.Context, client redis.UniversalClient) error {
	var mu sync.Mutex // guards unknown
	var unknown error // returned only if no other master evicts
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

// name returns the address of node, or "the master" for a client over Sentinels, which has none.
func name(node *redis.Client) string {
	if addr := node.Options().Addr; strings.Contains(addr, ":") {
		return addr
	}
	return "the master"
}

// policyOf reads INFO first, which managed services allow more often than CONFIG.
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
