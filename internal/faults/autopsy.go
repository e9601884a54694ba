package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// autopsy enters, while all still run, how things stand with the clients that miss something: where
// they are, what Redis holds for them.
func (s *stage) autopsy(ctx context.Context) {
	for _, client := range s.book.bereft() {
		at := "nowhere"
		for _, a := range s.actors {
			if a.member.client == client {
				at = fmt.Sprintf("connected to %q, %v over %v", a.at(), a.role, a.knock)
			}
		}
		fence := s.store.client.HGetAll(ctx, "c_{"+client+"}").Val()
		waiting := s.store.client.LRange(ctx, "mq_c_{"+client+"}", 0, 9).Val()
		for i, m := range waiting {
			waiting[i], _, _ = strings.Cut(m, ":")
		}
		s.book.mark(func() {
			s.book.evidence.add("autopsy", "%s is %s; its record: %v; its list begins with %v", client, at, fence, waiting)
		})
	}
}

// bereft are the clients to whom something is undeclared, in order.
func (b *book) bereft() (clients []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.pushes {
		for _, client := range p.to {
			s := b.seats[client]
			if s == nil || slices.Contains(clients, client) {
				continue
			}
			id, named := p.ids[client]
			if _, arrived := s.got[p.item]; named && !arrived && s.since.Before(p.first) && !s.declared(p.queue, id, p.acked) {
				clients = append(clients, client)
			}
		}
	}
	slices.Sort(clients)
	return clients
}
