package presence

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"switchboard/registry"
)

// Page is some of a channel's clients, and how many there are. Only servers with a lease at this moment count.
type Page struct {
	Members []registry.Member
	Next    string // the cursor of the next page, empty at the end
	Count   int    // clients in the channel
	Users   int    // different users, a second ago at most; with a cursor they are not counted again, and it is -1
}

// Page reads who is in a channel, about limit clients behind cursor ("" to begin). A client that moves from one server
// to another meanwhile may be in two pages. registry.ErrBadCursor for a cursor that no page had.
func (p *Presence) Page(ctx context.Context, channel, cursor string, limit int) (Page, error) {
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
	if cursor == "" {
		if page.Users, err = p.countUsers(ctx, channel, servers, page.Count); err != nil {
			return Page{}, err
		}
	}
	page.Members, page.Next, err = p.readPage(ctx, channel, servers, cursor, limit)
	return page, err
}

// leased are the servers of the channel that have a lease, in order.
func (p *Presence) leasedServers(ctx context.Context, channel string) ([]string, error) {
	servers, err := p.opts.Store.ChannelServers(ctx, channel)
	if err != nil {
		return nil, err
	}
	live, err := p.LeasedServers(ctx, servers)
	return slices.DeleteFunc(servers, func(s string) bool { return !live[s] }), err
}

// LeasedServers says which of the servers have a lease at this moment, and not as of this server's last beat.
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

// DropExpired is what comes before Page: servers without a lease at this moment are given up now, and not with the next beat.
func (s *Subscription) DropExpired(ctx context.Context) error {
	v, ok := s.view.(*View)
	if !ok {
		return nil
	}
	return v.dropExpired(ctx)
}

// Page is Presence.Page for somebody who is told who comes and goes, from what he is told: he has missed nobody who is not in a
// page and was not told of either. It is called on the loop. What is being told to him may already be in a page.
func (s *Subscription) Page(cursor string, limit int) (Page, error) {
	after, ok := strings.CutPrefix(cursor, viewCursor)
	v, isView := s.view.(*View)
	if !isView || cursor != "" && !ok {
		return Page{}, registry.ErrBadCursor
	}
	return v.page(after, limit), nil
}

// followed begins the cursors of those pages; the last client follows.
const viewCursor = "behind:"

func (v *View) page(after string, limit int) Page {
	v.mu.Lock()
	defer v.mu.Unlock()
	page := Page{Users: -1}
	var users int
	if page.Count, users = v.members.count(); after == "" {
		page.Users = users
	}
	if limit <= 0 {
		return page
	}
	more := false
	if page.Members, more = v.members.listAfter(after, limit); more {
		page.Next = viewCursor + page.Members[limit-1].Client
	}
	return page
}

// lapse gives up the servers that have no lease any more, except this one, which knows better.
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

// members are a page. Its cursor is `<the roster's cursor>@<server>`.
func (p *Presence) readPage(ctx context.Context, channel string, servers []string, cursor string, limit int) (list []registry.Member, next string, err error) {
	if limit <= 0 {
		return nil, "", nil
	}
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
			members, rest, err := p.opts.Store.RosterPage(ctx, server, channel, within, limit-len(list))
			if err != nil {
				return nil, "", err
			}
			list = append(list, members...)
			if len(list) < limit && rest != "" {
				within = rest
				continue
			}
			if rest != "" {
				return list, rest + "@" + server, nil
			}
			break
		}
		if len(list) >= limit && i+1 < len(servers) {
			return list, "@" + servers[i+1], nil
		}
	}
	return list, "", nil
}
