package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// explainLosses records the state of each client that misses a message: its connection, its record
// in Redis, and its queue. All processes must still run.
func (tb *bed) explainLosses(ctx context.Context) {
	for _, client := range tb.journal.clientsWithLosses() {
		state := "not connected"
		for _, c := range tb.clients {
			if c.clientSpec.client == client {
				state = fmt.Sprintf("connected to %q, %v over %v", c.connectedTo(), c.role, c.listener)
			}
		}
		record := tb.store.client.HGetAll(ctx, "c_{"+client+"}").Val()
		queue := tb.store.client.LRange(ctx, "mq_c_{"+client+"}", 0, 9).Val()
		for i, m := range queue {
			queue[i], _, _ = strings.Cut(m, ":")
		}
		tb.journal.update(func() {
			tb.journal.evidence.add("client state", "%s is %s; its record: %v; its queue begins with %v", client, state, record, queue)
		})
	}
}

// clientsWithLosses returns the clients that miss a message without a gap, sorted.
func (j *journal) clientsWithLosses() (clients []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, p := range j.pushes {
		for _, client := range p.to {
			record := j.clients[client]
			if record == nil || slices.Contains(clients, client) {
				continue
			}
			id, named := p.ids[client]
			if _, arrived := record.got[p.item]; named && !arrived && record.readyAt.Before(p.firstTry) && !record.gapCovers(p.queue, id, p.acceptedAt) && !j.isUnseenLocked(&p, id, record) {
				clients = append(clients, client)
			}
		}
	}
	slices.Sort(clients)
	return clients
}
