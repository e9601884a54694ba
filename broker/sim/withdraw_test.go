package sim

import "slices"

// checkWithdrawn looks at what an acknowledgement has done to the queues of the user's other clients: it may have taken
// out what is the first's that acknowledges it, and that this client has acknowledged, and nothing else.
func (m *model) checkWithdrawn(c *call) {
	cl := m.w.clients[c.about.client]
	for _, name := range m.w.names {
		if name == cl.name || cl.user == "" || m.w.clients[name].user != cl.user {
			continue
		}
		j := m.client(name)
		before := slices.Clone(j.held)
		j.held = m.look(about{client: name}).held
		for _, id := range before {
			if slices.Contains(j.held, id) {
				continue
			}
			j.gone[id] = struct{}{}
			m.w.log("%d of %s is withdrawn", id, name)
			if !m.mayWithdraw(cl, j.data[id]) {
				m.w.violate("%v took %d out of the list of %s, and that is not the first's that acknowledges it", c, id, name)
			}
		}
	}
}

// mayWithdraw says whether a message is of a push that a client has received and acknowledged, and by which it takes it
// from others.
func (m *model) mayWithdraw(cl *client, data string) bool {
	j := m.client(cl.name)
	return slices.ContainsFunc(m.w.pushes, func(p *push) bool { return p.first && p.data() == data }) &&
		slices.ContainsFunc(j.ids, func(id int64) bool {
			_, had := cl.seen[id]
			return had && id <= cl.ackedTo && j.data[id] == data
		})
}
