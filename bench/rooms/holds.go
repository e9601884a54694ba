package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"switchboard/bench/system"
)

// holdConnections is how many connections of a backend take holds at the same time.
const holdConnections = 16

// holds measures holds of one unit each, each for another user, on one resource and on many.
func (t *trial) holds(ctx context.Context) error {
	for _, n := range []int{1, t.size.resources} {
		if err := t.holdsOn(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

func (t *trial) holdsOn(ctx context.Context, resources int) error {
	metric := fmt.Sprintf("holds %d", resources)
	t.show("%s", metric)
	addr := t.meter.game.(switchboardGame).Addr()
	for i := range resources {
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://"+addr+"/v1/holds/"+resourceName(resources, i),
			strings.NewReader(`{"capacity":10000}`))
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		if resp.StatusCode >= 300 {
			return fmt.Errorf("PUT of a resource: %s", resp.Status)
		}
	}
	before, err := t.meter.cpu()
	if err != nil {
		return err
	}
	var next atomic.Int64
	end := time.Now().Add(t.size.time)
	group, ctx := errgroup.WithContext(ctx)
	for range holdConnections {
		group.Go(func() error {
			conn, err := system.DialHTTP(addr)
			if err != nil {
				return err
			}
			defer conn.Close()
			for time.Now().Before(end) {
				i := next.Add(1)
				if i > int64(t.size.maxHolds) {
					next.Add(-1)
					return nil
				}
				path := "/v1/holds/" + resourceName(resources, int(i)%resources) + "/holds"
				if _, err := conn.Post(ctx, path, jsonHeader, fmt.Appendf(nil, `{"id":"h%d","user":"u%d","count":1}`, i, i)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	now, err := t.meter.cpu()
	if err != nil {
		return err
	}
	t.record(metric+" per s", float64(next.Load())/now.at.Sub(before.at).Seconds())
	t.record(metric+" cpu", micros(now.since(before).total(), next.Load()))
	return nil
}

func resourceName(resources, i int) string { return fmt.Sprintf("bench-%d-%d", resources, i) }
