package presence

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"switchboard/internal/wire"
	"switchboard/registry"
)

// Page is a part of a channel's members, with the total numbers.
type Page struct {
	Members []registry.Member
	Next    string // cursor of the next page; empty on the last page
	Count   int    // clients in the channel
	Users   int    // different users, as counted at most countTTL ago; -1 on later pages, which do not count them

	here []json.RawMessage // the here values of Members that this server knows; nil if there are none
}

// WireMembers converts the members to the form that clients receive, with their here values.
func (p Page) WireMembers() []wire.Member { return withHere(p.Members, p.here) }

// BackendMembers is WireMembers for the backend: it also sees the users that have aliases.
func (p Page) BackendMembers() []wire.Member {
	return addHere(wireMembers(p.Members, func(m registry.Member) registry.Member { return m }), p.here)
}

// withHere is WireMembers with the members' here values, which may be nil.
func withHere(members []registry.Member, here []json.RawMessage) []wire.Member {
	return addHere(WireMembers(members), here)
}

func addHere(list []wire.Member, here []json.RawMessage) []wire.Member {
	for i, data := range here {
		list[i].Here = data
	}
	return list
}

// Page reads about limit members of a channel after cursor, which is "" for the first page, and
// about maxBytes of them, 0 for no limit. Only members of servers that hold a lease now are
// included. A client that moves to another server meanwhile may be in two pages. It returns
// registry.ErrBadCursor for an unknown cursor.
func (p *Presence) Page(ctx context.Context, channel, cursor string, limit, maxBytes int) (Page, error) {
	servers, err := p.leasedServers(ctx, channel)
	if err != nil {
		return Page{}, err
	}
	sizes, err := p.opts.Store.RosterSizes(ctx, channel, servers)
	if err != nil {
		return Page{}, err
	}
	page := Page{Users: -1}
	for _, n := range sizes {
		page.Count += n
	}
	aliased := p.showsAliases(channel)
	if cursor == "" || aliased {
		users, err := p.countUsers(ctx, channel, servers, page.Count)
		if err != nil {
			return Page{}, err
		}
		if aliased { // the rosters of several servers may have the same alias
			page.Count = users
		}
		if cursor == "" {
			page.Users = users
		}
	}
	page.Members, page.Next, err = p.readPage(ctx, channel, servers, cursor, budget{limit, maxBytes})
	page.here = p.hereOf(channel, page.Members, false)
	return page, err
}

// leasedServers returns the servers of the channel that hold a lease, sorted.
func (p *Presence) leasedServers(ctx context.Context, channel string) ([]string, error) {
	servers, err := p.opts.Store.ChannelServers(ctx, channel)
	if err != nil {
		return nil, err
	}
	live, err := p.LeasedServers(ctx, servers)
	return without(servers, func(s string) bool { return !live[s] }), err
}

// without returns a copy of servers without those that match. The store may share its list with
// other callers.
func without(servers []string, match func(string) bool) []string {
	return slices.DeleteFunc(slices.Clone(servers), match)
}

// LeasedServers returns which of the servers hold a lease now, rather than at this server's last
// beat.
func (p *Presence) LeasedServers(ctx context.Context, servers []string) (map[string]bool, error) {
	live := make([]bool, len(servers))
	group, ctx := errgroup.WithContext(ctx)
	for i, server := range servers {
		group.Go(func() (err error) {
			_, live[i], err = p.opts.Store.Lease(ctx, server)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	leased := make(map[string]bool, len(servers))
	for i, server := range servers {
		leased[server] = live[i]
	}
	return leased, nil
}

// DropExpired removes from the view the servers whose lease has ended. Call it before Page:
// otherwise they are removed only with the next beat.
func (s *Subscription) DropExpired(ctx context.Context) error {
	v, ok := s.view.(*View)
	if !ok {
		return nil
	}
	return v.dropExpired(ctx)
}

// Page returns a page from the watcher's own view. A watcher that pages sees every member at least
// once, either in a page or as a join, and each leave after a page. A join or leave that is being
// sent may already be in a page. Page runs on the watcher's loop.
func (s *Subscription) Page(cursor string, limit int) (Page, error) {
	after, ok := strings.CutPrefix(cursor, viewCursor)
	v, isView := s.view.(*View)
	if !isView || cursor != "" && !ok {
		return Page{}, registry.ErrBadCursor
	}
	page, seq := v.page(after, limit)
	s.known.page(seq)
	return page, nil
}

// viewCursor is the prefix of the cursors of Subscription.Page. The id of the page's last client
// follows. Clients may use a cursor after an upgrade of the server, so the prefix stays as it is.
const viewCursor = "behind:"

// page returns a page, and the last change that it may include.
func (v *View) page(after string, limit int) (page Page, seq int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	page.Users = -1
	var users int
	if page.Count, users = v.members.count(); after == "" {
		page.Users = users
	}
	if limit <= 0 {
		return page, v.members.seq
	}
	more := false
	if page.Members, more = v.members.listAfter(after, limit); more {
		page.Next = viewCursor + page.Members[limit-1].Client
	}
	page.here = v.p.hereOf(v.channel, page.Members, true)
	return page, v.members.seq
}

// dropExpired removes the servers whose lease has ended. It keeps this server, which knows its own
// state better.
func (v *View) dropExpired(ctx context.Context) error {
	self := v.p.opts.ServerID()
	var servers []string
	v.mu.Lock()
	for server := range v.rosters {
		if server != self {
			servers = append(servers, server)
		}
	}
	v.mu.Unlock()
	live, err := v.p.LeasedServers(ctx, servers)
	if err != nil {
		return err
	}
	if servers = slices.DeleteFunc(servers, func(s string) bool { return live[s] }); len(servers) > 0 {
		v.p.markDead(servers)
	}
	return nil
}

// budget is what a page may still have.
type budget struct {
	members int
	bytes   int // 0 for any number
}

// firstMembers is how many members of a page are read first. The others are as many as fit the
// bytes of the page if they are like those.
const firstMembers = 32

// next returns how many members to read next, if list has been read.
func (b budget) next(list []registry.Member) int {
	n := b.members - len(list)
	switch used := sizeOf(list); {
	case b.bytes == 0:
	case len(list) == 0:
		n = min(n, firstMembers)
	default:
		n = min(n, max(1, (b.bytes-used)*len(list)/max(used, 1)))
	}
	return n
}

// isUsed reports whether list is all of a page.
func (b budget) isUsed(list []registry.Member) bool {
	return len(list) >= b.members || b.bytes > 0 && sizeOf(list) >= b.bytes
}

// sizeOf returns about how many bytes the store has sent for members.
func sizeOf(list []registry.Member) (n int) {
	for i := range list {
		n += len(list[i].Client) + len(list[i].User) + len(list[i].Info)
	}
	return n
}

// readPage reads a page from the store. Its cursor has the form `<cursor in the roster>@<server>`.
func (p *Presence) readPage(ctx context.Context, channel string, servers []string, cursor string, b budget) (list []registry.Member, next string, err error) {
	if b.members <= 0 {
		return nil, "", nil
	}
	aliased := p.showsAliases(channel)
	within, at, found := strings.Cut(cursor, "@")
	if cursor != "" && !found {
		return nil, "", registry.ErrBadCursor
	}
	for i, server := range servers {
		if server < at {
			continue
		}
		if server > at {
			within = ""
		}
		for {
			members, rest, err := p.opts.Store.RosterPage(ctx, server, channel, within, b.next(list))
			if err != nil {
				return nil, "", err
			}
			if aliased {
				if members, err = p.newAliases(ctx, channel, servers[:i], members); err != nil {
					return nil, "", err
				}
			}
			list = append(list, members...)
			switch {
			case rest == "":
			case b.isUsed(list):
				return list, rest + "@" + server, nil
			default:
				within = rest
				continue
			}
			break
		}
		if b.isUsed(list) && i+1 < len(servers) {
			return list, "@" + servers[i+1], nil
		}
	}
	return list, "", nil
}

// newAliases returns the members that are aliases and that none of the servers has.
func (p *Presence) newAliases(
	ctx context.Context, channel string, servers []string, members []registry.Member,
) ([]registry.Member, error) {
	members = onlyAliases(members)
	for _, server := range servers {
		names := make([]string, len(members))
		for i, m := range members {
			names[i] = m.Client
		}
		known, err := p.opts.Store.RosterHas(ctx, server, channel, names)
		if err != nil {
			return nil, err
		}
		kept := members[:0]
		for i, m := range members {
			if !known[i] {
				kept = append(kept, m)
			}
		}
		members = kept
	}
	return members, nil
}
