package main

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"switchboard/bench/system"
	"switchboard/internal/testbed"
)

// capacity is the number of players of each room.
func (s size) capacity() int { return s.connections / s.channels }

// measureSmallRooms measures joins, the memory and the CPU of rooms in which nothing happens, and
// changes in half of the rooms. A fiftieth of the rooms, more than the counted ones, are filled
// before that: the first work of the server does not count.
func measureSmallRooms(ctx context.Context, t *trial) error {
	if err := t.players.Fill(ctx, 1+t.size.channels/50, t.size.capacity()); err != nil {
		return err
	}
	if err := t.measureRoomMemory(ctx, func() error { return t.measureJoins(ctx) }); err != nil {
		return err
	}
	spent, _, err := t.measureIdle(ctx, t.size.time)
	if err != nil {
		return err
	}
	t.record("idle_us_per_room", micros(spent.total(), int64(t.players.Rooms()))/spent.elapsed.Seconds())
	return t.measureChanges(ctx, max(1, t.size.channels/2))
}

// measureRooms measures joins and changes.
func measureRooms(ctx context.Context, t *trial) error {
	if err := t.measureJoins(ctx); err != nil {
		return err
	}
	return t.measureChanges(ctx, t.size.channels)
}

// measureEmptyRooms measures the memory of rooms without players.
func measureEmptyRooms(ctx context.Context, t *trial) error {
	if err := t.players.Fill(ctx, 1, 4); err != nil { // the first work of the server
		return err
	}
	return t.measureRoomMemory(ctx, func() error { return t.players.CreateEmpty(ctx, t.size.channels) })
}

// measureRoomMemory measures the memory of the rooms that do makes.
func (t *trial) measureRoomMemory(ctx context.Context, do func() error) error {
	empty, emptyStore, err := t.memory(ctx)
	if err == nil {
		err = do()
	}
	if err != nil {
		return err
	}
	full, fullStore, err := t.memory(ctx)
	n := float64(t.size.channels)
	t.record("rss_bytes_per_room", float64(full-empty)/n)
	if t.redis != nil {
		t.record("redis_bytes_per_room", (fullStore-emptyStore)/n)
	}
	return err
}

// measureJoins measures players that connect and join until they know the state of their room.
func (t *trial) measureJoins(ctx context.Context) error {
	t.show("%d players join", t.size.connections)
	spent, err := t.spent(func() error { return t.players.Fill(ctx, t.size.channels, t.size.capacity()) })
	n := int64(t.size.connections)
	t.record("joins_per_s", spent.perSecond(n))
	t.record("cpu_us_per_join", micros(spent.total(), n))
	return err
}

const (
	// joinsSettle is the time in which the joins of a room have reached all members.
	joinsSettle = 300 * time.Millisecond
	// changesWarmUp is the part of the time before the measurement begins.
	changesWarmUp = 4
)

// measureChanges measures a closed loop in some rooms: each player changes its position, and
// changes it again as soon as the change has come back.
func (t *trial) measureChanges(ctx context.Context, rooms int) error {
	t.show("players of %d rooms change their positions", rooms)
	if err := t.idle(ctx, joinsSettle); err != nil {
		return err
	}
	if err := t.players.Move(rooms); err != nil {
		return err
	}
	if err := t.idle(ctx, t.size.time/changesWarmUp); err != nil {
		return err
	}
	before := t.players.Delivered()
	spent, err := t.spent(func() error { return t.idle(ctx, t.size.time) })
	if err != nil {
		return err
	}
	n := t.players.Delivered() - before
	t.record("changes_per_s", spent.perSecond(n)/float64(t.size.capacity()))
	t.record("cpu_us_per_delivery", micros(spent.total(), n))
	t.record("cores", spent.total().Seconds()/spent.elapsed.Seconds())
	if t.redis != nil {
		t.record("redis_us_per_delivery", micros(spent.redis, n))
	}
	return t.players.Verify(ctx)
}

// measureHolds measures holds of one unit each, each for another user, on one resource or on many.
func measureHolds(ctx context.Context, t *trial) error {
	addr := t.running.Addr()
	for i := range t.x {
		err := (testbed.API{HTTP: addr, Client: http.DefaultClient}).Call(ctx, http.MethodPut, "/v1/holds/"+resourceName(i), `{"capacity":10000}`, nil)
		if err != nil {
			return err
		}
	}
	http.DefaultClient.CloseIdleConnections()
	var next atomic.Int64
	spent, err := t.spent(func() error {
		end := time.Now().Add(t.size.time)
		group, ctx := errgroup.WithContext(ctx)
		for range t.size.publishers {
			group.Go(func() error { return t.takeHolds(ctx, addr, &next, end) })
		}
		return group.Wait()
	})
	n := min(next.Load(), int64(t.size.pushes))
	t.record("holds_per_s", spent.perSecond(n))
	t.record("cpu_us_per_hold", micros(spent.total(), n))
	return err
}

// takeHolds takes holds over one connection until end, or until all are taken.
func (t *trial) takeHolds(ctx context.Context, addr string, next *atomic.Int64, end time.Time) error {
	conn, err := system.DialHTTP(addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	for time.Now().Before(end) {
		i := next.Add(1)
		if i > int64(t.size.pushes) {
			return nil
		}
		path := "/v1/holds/" + resourceName(int(i)%t.x) + "/holds"
		if _, err := conn.Post(ctx, path, "Content-Type: application/json\r\n", fmt.Appendf(nil, `{"id":"h%d","user":"u%d","count":1}`, i, i)); err != nil {
			return err
		}
	}
	return nil
}

func resourceName(i int) string { return fmt.Sprint("bench-", i) }
