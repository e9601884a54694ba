package system

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"switchboard/bench/swarm"
	"switchboard/internal/redispipe"
)

// RedisFloor is Redis alone: publishers write a field and its name with one script, in shared round
// trips. There is no id, no message and no subscriber.
type RedisFloor struct{}

// Notes describes the configuration.
func (*RedisFloor) Notes() string {
	return "Redis alone: a script with HSET and ZADD in shared round trips; a page is one HGETALL; no ids, no messages, no subscribers"
}

// floorScript sets field ARGV[1] of KEYS[1] to ARGV[2], and adds its name to KEYS[2].
const floorScript = `redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) return redis.call('ZADD', KEYS[2], 0, ARGV[1])`

// Start loads the script.
func (*RedisFloor) Start(ctx context.Context, s Setup) (Running, error) {
	client := redis.NewClient(&redis.Options{Addr: s.Redis})
	digest, err := client.ScriptLoad(ctx, floorScript).Result()
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return &redisFloor{client, redispipe.New(client, redispipe.Options{}), digest, s.Redis}, nil
}

type redisFloor struct {
	client *redis.Client
	pipe   *redispipe.Pipe
	digest string // of floorScript
	addr   string
}

// StoreOnly implements [StoreOnly].
func (*redisFloor) StoreOnly() {}

func (*redisFloor) PIDs() []int                     { return nil }
func (r *redisFloor) Addr() string                  { return r.addr }
func (*redisFloor) Dialect() swarm.Dialect          { return &swarm.Switchboard{} } // nothing connects
func (r *redisFloor) Stop() error                   { return r.client.Close() }
func (r *redisFloor) Publisher() (Publisher, error) { return &redisFloorPublisher{floor: r}, nil }

type redisFloorPublisher struct {
	noBatch
	floor *redisFloor
}

func (p *redisFloorPublisher) set(ctx context.Context, channel, field string, value []byte) error {
	r := p.floor
	return r.pipe.Do(ctx, redis.NewCmd(ctx, "evalsha", r.digest, 2, "st_{"+channel+"}", "st_n_{"+channel+"}", field, value))
}

func (p *redisFloorPublisher) Publish(ctx context.Context, channel string, data []byte) error {
	return p.set(ctx, channel, StateField, data)
}

// Fill implements [StatePublisher].
func (p *redisFloorPublisher) Fill(ctx context.Context, channel string, fields []string, value []byte) error {
	for _, field := range fields {
		if err := p.set(ctx, channel, field, value); err != nil {
			return err
		}
	}
	return nil
}

// ReadState implements [StatePublisher].
func (p *redisFloorPublisher) ReadState(ctx context.Context, channel string) (fields int, err error) {
	page := redis.NewMapStringStringCmd(ctx, "hgetall", "st_{"+channel+"}")
	if err := p.floor.pipe.Do(ctx, page); err != nil {
		return 0, err
	}
	return len(page.Val()), nil
}

func (*redisFloorPublisher) Close() error { return nil }
