package redisurl

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Memory is the memory of a master.
type Memory struct {
	Server    string // its address, or "the master" over Sentinels
	Used, Max int64  // bytes; Max is 0 for no limit
	Policy    string // maxmemory-policy, "" if Redis does not reveal it
}

// ReadMemory returns the memory of all masters, in no order.
func ReadMemory(ctx context.Context, client redis.UniversalClient) ([]Memory, error) {
	var mu sync.Mutex // guards list
	var list []Memory
	err := eachMaster(ctx, client, func(ctx context.Context, node *redis.Client) error {
		info, err := node.Info(ctx, "memory").Result()
		if err != nil {
			return fmt.Errorf("memory of %s: %w", name(node), err)
		}
		m := Memory{Server: name(node), Policy: infoField(info, "maxmemory_policy")}
		// Some managed services leave a field out; 0 then means that it is not known.
		m.Used, _ = strconv.ParseInt(infoField(info, "used_memory"), 10, 64)
		m.Max, _ = strconv.ParseInt(infoField(info, "maxmemory"), 10, 64)
		mu.Lock()
		defer mu.Unlock()
		list = append(list, m)
		return nil
	})
	return list, err
}
