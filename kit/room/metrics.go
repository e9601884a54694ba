package room

import (
	"context"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"switchboard/kit"
)

// newCollector returns the numbers of rooms and players.
func (r *Rooms) newCollector() prometheus.Collector {
	rooms := prometheus.NewDesc("switchboard_rooms", "Rooms by mode and status, in all brokers.", []string{"mode", "status"}, nil)
	players := prometheus.NewDesc("switchboard_room_players",
		"Players in rooms by mode, in all brokers, without reservations.", []string{"mode"}, nil)
	modes := slices.Sorted(maps.Keys(r.opts.Modes))
	statuses := []Status{Waiting, Playing, Finished}
	return kit.Gauges{
		Descs: []*prometheus.Desc{rooms, players},
		Count: func(ctx context.Context, set func(*prometheus.Desc, int, ...string)) {
			for _, mode := range modes {
				var lists []string
				for _, status := range statuses {
					list, _ := findList(orderCreated, attributes{mode: mode, status: string(status)})
					lists = append(lists, list)
				}
				for n := 1; n <= r.opts.Modes[mode].Capacity; n++ {
					lists = append(lists, fillList(mode, n))
				}
				counts, err := r.index.Count(ctx, lists...)
				if err != nil {
					continue
				}
				for i, status := range statuses {
					set(rooms, counts[i], mode, string(status))
				}
				inMode := 0
				for i, n := range counts[len(statuses):] {
					inMode += (i + 1) * n
				}
				set(players, inMode, mode)
			}
		},
	}
}
