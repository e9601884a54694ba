package room_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/broker/extension"
	clientroom "switchboard/client/room"
	"switchboard/kit/kittest"
	"switchboard/kit/room"
)

// BenchmarkQuick lets players join by quick joins on three brokers over one Redis. It reports how
// many rooms were made for each room that is needed, the median and the 99th percentile of a call,
// and the scripts and the CPU time of Redis for each call, with those for lists and lobbies.
func BenchmarkQuick(b *testing.B) {
	for _, c := range []struct {
		players int
		pause   time.Duration
	}{{40, 0}, {200, 0}, {200, 5 * time.Millisecond}} {
		b.Run(fmt.Sprintf("%d players, %v apart", c.players, c.pause), func(b *testing.B) {
			first := kittest.NewRedis(kittest.Redis.Client(b))
			var brokers []*kittest.Broker
			for range 3 {
				s := kittest.OpenRedis(kittest.Redis.Client(b), first.Prefix)
				brokers = append(brokers, s.Start(b, kittest.With(func(h *extension.Host) (extension.Extension, error) {
					r, err := room.New(h, room.Options{Modes: modes(), Index: s.Index("rooms")})
					if err != nil {
						return extension.Extension{}, err
					}
					return r.Extension(), nil
				})))
			}
			var times []time.Duration
			used := map[string]bool{}
			var scripts, cpu float64
			players := 0
			for b.Loop() {
				b.StopTimer()
				var arriving []*clientroom.Rooms
				for range c.players {
					r := clientroom.New(brokers[players%3].Connect(b, fmt.Sprint("player", players), nil))
					if _, err := r.Mine(b.Context(), ""); err != nil {
						b.Fatal(err)
					}
					arriving, players = append(arriving, r), players+1
				}
				scriptsBefore, cpuBefore := redisWork(b, first.Redis)
				b.StartTimer()
				took, ids := quickTimes(b, arriving, c.pause)
				b.StopTimer()
				for i := range ids {
					times, used[ids[i]] = append(times, took[i]), true
				}
				scriptsAfter, cpuAfter := redisWork(b, first.Redis)
				scripts, cpu = scripts+scriptsAfter-scriptsBefore, cpu+cpuAfter-cpuBefore
				b.StartTimer()
			}
			slices.Sort(times)
			report := func(unit string, v float64) { b.ReportMetric(v, unit) }
			report("rooms/needed", float64(len(used))/float64((players+3)/4))
			report("p50-ms", float64(times[len(times)/2].Microseconds())/1000)
			report("p99-ms", float64(times[len(times)*99/100].Microseconds())/1000)
			report("scripts/call", scripts/float64(players))
			report("redis-µs/call", cpu/float64(players))
		})
	}
}

// quickTimes makes quick joins, with a pause between the arrivals. It returns how long each took,
// with the subscription, and the rooms.
func quickTimes(b *testing.B, players []*clientroom.Rooms, pause time.Duration) ([]time.Duration, []string) {
	ctx, cancel := context.WithTimeout(b.Context(), kittest.Timeout)
	defer cancel()
	times, ids := make([]time.Duration, len(players)), make([]string, len(players))
	var group sync.WaitGroup
	tick := time.NewTicker(max(pause, 1))
	defer tick.Stop()
	for i, r := range players {
		if pause > 0 {
			<-tick.C
		}
		group.Go(func() {
			start := time.Now()
			joined, err := r.Quick(ctx, clientroom.QuickOptions{Mode: "battle"})
			if err != nil {
				b.Error(err)
				return
			}
			times[i], ids[i] = time.Since(start), joined.ID
		})
	}
	group.Wait()
	return times, ids
}

var (
	scriptCalls = regexp.MustCompile(`cmdstat_eval(?:sha)?:calls=(\d+)`)
	cpuSeconds  = regexp.MustCompile(`used_cpu_(?:sys|user):([0-9.]+)`)
)

// redisWork returns how many scripts Redis has run, and its CPU time in microseconds.
func redisWork(b *testing.B, rdb redis.UniversalClient) (scripts, cpu float64) {
	raw, err := rdb.Info(b.Context(), "commandstats", "cpu").Result()
	if err != nil {
		b.Fatal(err)
	}
	for _, m := range scriptCalls.FindAllStringSubmatch(raw, -1) {
		n, _ := strconv.ParseFloat(m[1], 64)
		scripts += n
	}
	for _, m := range cpuSeconds.FindAllStringSubmatch(raw, -1) {
		n, _ := strconv.ParseFloat(m[1], 64)
		cpu += n * 1e6
	}
	return scripts, cpu
}
