package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// explainLosses records, while all processes still run, the state of each client that misses a
// message: its connection, its record in Redis, and its queue.
func (tb *testbed) explainLosses(ctx context.Context) {
	for _, client := range tb.journal.clientsWithLosses() {
		at := "not connected"
		for _, a := range tb.clients {
			if a.clientSpec.client == client {
				at = fmt.Sprintf("connected to %q, %v over %v", a.connectedTo(), a.role, a.listener)
			}
		}
		fence := tb.store.client.HGetAll(ctx, "c_{"+client+"}").Val()
		waiting := tb.store.client.LRange(ctx, "mq_c_{"+client+"}", 0, 9).Val()
		for i, m := range waiting {
			waiting[i], _, _ = strings.Cut(m, ":")
		}
		tb.journal.update(func() {
			tb.journal.evidence.add("client state", "%s is %s; its record: %v; its queue begins with %v", client, at, fence, waiting)
		})
	}
}

// clientsWithLosses returns the clients that miss a message without a gap, sorted.
func (j *journal) clientsWithLosses() (clients []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, p := range j.pushes {
		for _, client := range p.to {
			s := j.clients[client]
			if s == nil || slices.Contains(clients, client) {
				continue
			}
			id, named := p.ids[client]
			if _, arrived := s.got[p.item]; named && !arrived && s.readyAt.Before(p.firstTry) && !s.gapCovers(p.queue, id, p.acceptedAt) {
				clients = append(clients, client)
			}
		}
	}
	slices.Sort(clients)
	return clients
}
