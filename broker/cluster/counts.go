package cluster

import (
	"context"

	"switchboard/broker/api"
)

// localSubscribers returns the number of subscribers of each channel on this server.
func (c *Cluster) localSubscribers(channels []string) []int {
	counts := make([]int, len(channels))
	for i, channel := range channels {
		counts[i] = c.parts.Hub.SubscriberCount(channel)
	}
	return counts
}

// Subscribers implements api.Cluster: it adds the numbers of all live servers. partial means that a
// server did not answer.
func (c *Cluster) Subscribers(ctx context.Context, channels []string) (total []int, partial bool) {
	total = c.localSubscribers(channels)
	if len(channels) == 0 {
		return total, false
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	servers := c.others()
	answers := ask[[]int](ctx, c, servers, callCount, channels)
	for _, s := range servers {
		counts := answers[s.ID]
		if len(counts) != len(channels) {
			partial = true
			continue
		}
		for i, n := range counts {
			total[i] += n
		}
	}
	return total, partial
}

// Stats implements api.Cluster: it returns the numbers of all live servers. partial means that a
// server did not answer; it is missing then.
func (c *Cluster) Stats(ctx context.Context) (list []api.Stats, partial bool) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	list = []api.Stats{c.opts.Stats()}
	servers := c.others()
	answers := ask[api.Stats](ctx, c, servers, callStats, nil)
	for _, s := range servers {
		if stats, found := answers[s.ID]; found {
			list = append(list, stats)
		}
	}
	return list, len(answers) < len(servers)
}
