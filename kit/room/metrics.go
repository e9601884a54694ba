package room

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// scrapeTimeout bounds how long a scrape of the metrics waits for the index.
const scrapeTimeout = 2 * time.Second

// collector counts the rooms and players of all brokers when the metrics are scraped. Each broker
// that shares the index reports the same values.
type collector struct {
	r              *Rooms
	rooms, players *prometheus.Desc
	modes          []string
}

func (r *Rooms) newCollector() *collector {
	return &collector{
		r: r, modes: slices.Sorted(maps.Keys(r.opts.Modes)),
		rooms: prometheus.NewDesc("switchboard_rooms",
			"Rooms by mode and status, in all brokers.", []string{"mode", "status"}, nil),
		players: prometheus.NewDesc("switchboard_room_players",
			"Players in rooms by mode, in all brokers, without reservations.", []string{"mode"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) { to <- c.rooms; to <- c.players }

// Collect implements prometheus.Collector. Values that cannot be read are missing.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	statuses := []Status{Waiting, Playing, Finished}
	for _, mode := range c.modes {
		var lists []string
		for _, status := range statuses {
			list, _ := findList(orderCreated, attributes{mode: mode, status: string(status)})
			lists = append(lists, list)
		}
		for n := 1; n <= c.r.opts.Modes[mode].Capacity; n++ {
			lists = append(lists, fillList(mode, n))
		}
		counts, err := c.r.index.Count(ctx, lists...)
		if err != nil {
			continue
		}
		for i, status := range statuses {
			to <- prometheus.MustNewConstMetric(c.rooms, prometheus.GaugeValue, float64(counts[i]), mode, string(status))
		}
		players := 0
		for i, rooms := range counts[len(statuses):] {
			players += (i + 1) * rooms
		}
		to <- prometheus.MustNewConstMetric(c.players, prometheus.GaugeValue, float64(players), mode)
	}
}
