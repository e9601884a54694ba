package state

import (
	"maps"
	"slices"
)

// own applies the ownership of an update's operations.
func (o *oracle) own(after map[string]oracleField, u *Update, now int64) {
	for _, op := range u.Ops {
		if f, found := after[op.Field]; found && op.Kind != Delete && op.Own == Disown {
			after[op.Field] = withOwners(f, slices.DeleteFunc(f.ownerList(), func(client string) bool {
				return u.Client == "" || client == u.Client
			}))
		}
	}
	o.settle(after, now)
	for _, op := range u.Ops {
		if f, found := after[op.Field]; found && op.Kind != Delete && op.Own == Own {
			if f.grace = op.Grace.Milliseconds(); op.Grace < 0 {
				f.grace = AwayStays
			}
			after[op.Field] = withOwners(f, append(f.ownerList(), u.Client))
			o.conns[u.Client] = connectedAs(Connection{u.Client, u.Generation, u.Server})
		}
	}
	o.settle(after, now)
}

func connectedAs(conn Connection) oracleConn {
	return oracleConn{lowest: conn.Generation, seen: conn.Generation, connected: true, server: conn.Server}
}

// sweep forgets clients.
func (o *oracle) sweep(now int64) {
	o.due(now)
	maps.DeleteFunc(o.conns, func(client string, c oracleConn) bool {
		for _, f := range o.fields {
			if f.ownedBy(client) {
				return false
			}
		}
		return !c.connected && now-c.endedAt > FenceMS
	})
}

func (o *oracle) end(now int64, conn Connection) {
	o.due(now)
	if o.conns[conn.Client].seen <= conn.Generation {
		o.conns[conn.Client] = oracleConn{lowest: conn.Generation + 1, seen: conn.Generation, endedAt: now}
	}
	o.settle(o.fields, now)
}

func (o *oracle) endServer(now int64, server string) {
	o.due(now)
	for client, c := range o.conns {
		if c.connected && c.server == server {
			c.connected, c.lost, c.endedAt = false, server, now
			o.conns[client] = c
		}
	}
	o.settle(o.fields, now)
}

func (o *oracle) back(now int64, conn Connection) bool {
	o.due(now)
	if o.isFenced(conn.Client, conn.Generation, conn.Server) {
		return false
	}
	if _, known := o.conns[conn.Client]; known {
		o.conns[conn.Client] = connectedAs(conn)
	}
	o.settle(o.fields, now)
	return true
}

func (o *oracle) disown(now int64, conn Connection) {
	o.due(now)
	c, known := o.conns[conn.Client]
	if !known || c.seen > conn.Generation {
		return
	}
	for name, f := range o.fields {
		switch {
		case !f.ownedBy(conn.Client) || f.grace == AwayStays:
		case len(f.ownerList()) == 1:
			delete(o.fields, name)
		default:
			o.fields[name] = withOwners(f, slices.DeleteFunc(f.ownerList(), func(owner string) bool { return owner == conn.Client }))
		}
	}
	if conn.Generation > c.seen || c.connected {
		o.conns[conn.Client] = oracleConn{lowest: conn.Generation, seen: conn.Generation - 1, endedAt: now}
	}
	o.settle(o.fields, now)
	removeOrphans(o.fields)
}
