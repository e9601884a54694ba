package sim

import "slices"

// checkWithdrawn checks what an acknowledgement removed from the queues of the user's other
// clients. It may remove only messages that were pushed with First and that this client has
// acknowledged.
func (m *model) checkWithdrawn(c *call) {
	cl := m.w.clients[c.subject.client]
	for _, name := range m.w.names {
		if name == cl.name || cl.user == "" || m.w.clients[name].user != cl.user {
			continue
		}
		queue := m.client(name)
		before := slices.Clone(queue.held)
		queue.held = m.readRecord(subject{client: name}).held
		for _, id := range before {
			if slices.Contains(queue.held, id) {
				continue
			}
			queue.withdrawn[id] = struct{}{}
			m.w.log("%d of %s is withdrawn", id, name)
			if !m.mayWithdraw(cl, queue.data[id]) {
				m.w.violate("%v took %d out of the list of %s, but may not withdraw it", c, id, name)
			}
		}
	}
}

// mayWithdraw reports whether the client has received and acknowledged the push of data, and the
// push was made with First.
func (m *model) mayWithdraw(cl *client, data string) bool {
	queue := m.client(cl.name)
	return slices.ContainsFunc(m.w.pushes, func(p *push) bool { return p.first && p.data() == data }) &&
		slices.ContainsFunc(queue.ids, func(id int64) bool {
			_, seen := cl.seen[id]
			return seen && id <= cl.ackedTo && queue.data[id] == data
		})
}
