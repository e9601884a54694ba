package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"switchboard/client/backend"
	"switchboard/cmd/internal/screen"
)

// topFlags are the flags of top.
type topFlags struct {
	interval time.Duration
	once     bool
	sort     string
}

func (a *app) topCommand() *cobra.Command {
	var f topFlags
	c := &cobra.Command{
		Use: "top", Short: "Shows what the instances do, live",
		Long: `Shows the instances with their connections, users, channels, pushes and deliveries per second, and what needs attention,
until it is interrupted. Rates are those between two readings, and begin with the second one.

drain is how long a server took to read the messages whose hint may have been lost, as p50/p99 of about the last 10 s:
while it is low, messages arrive as fast as hints do. append is the time of storing a message.

On a terminal it draws the table again every --interval. Elsewhere it prints a line for each instance and a total, with the
time in Unix ms first. With --json, each reading is one line. --once waits for one interval, prints one reading and ends;
its exit code is 1 if there is a problem. switchboard doctor says more about what is wrong.`,
		Example: `  switchboard top
  switchboard top --once --json | jq .total`,
		Args: args(0, 0, ""), SuggestFor: []string{"stats", "monitor", "watch", "status"},
	}
	flags := c.Flags()
	flags.DurationVarP(&f.interval, "interval", "i", 2*time.Second, "time between two readings")
	flags.BoolVar(&f.once, "once", false, "one reading")
	flags.StringVar(&f.sort, "sort", "server", "server, connections, pushes or deliveries")
	a.register(c, "sort", cobra.FixedCompletions([]string{"server", "connections", "pushes", "deliveries"}, cobra.ShellCompDirectiveNoFileComp))
	c.RunE = a.call(func(ctx context.Context, sb *backend.Client, _ []string) error {
		if f.interval < 100*time.Millisecond {
			return usage("--interval: at least 100ms")
		}
		if orders[f.sort] == nil {
			return usage("--sort: want server, connections, pushes or deliveries")
		}
		return a.top(ctx, sb, f)
	})
	return c
}

// figures are those of an instance, or of all of them.
type figures struct {
	Server      string           `json:"server,omitempty"`
	Health      string           `json:"health,omitempty"`  // healthy, or the code of the most urgent finding
	Late        int64            `json:"late_ms,omitempty"` // how much older its heartbeat is than the newest one
	Connections int64            `json:"connections"`
	Users       int64            `json:"users"`
	Channels    int64            `json:"channels"`
	Pushes      float64          `json:"pushes_per_second"`
	Errors      float64          `json:"push_errors_per_second"`
	Deliveries  float64          `json:"deliveries_per_second"`
	Append      backend.Duration `json:"append"`
	Drain       backend.Duration `json:"drain"`
	RSS         int64            `json:"rss,omitempty"`
}

// reading is what top shows at one time.
type reading struct {
	At       int64     `json:"at"`     // Unix ms
	Health   string    `json:"health"` // the status of the report of doctor
	Problems []string  `json:"problems,omitempty"`
	Servers  []figures `json:"servers"`
	Total    figures   `json:"total"`
}

var orders = map[string]func(a, b figures) int{
	"server":      func(a, b figures) int { return strings.Compare(a.Server, b.Server) },
	"connections": func(a, b figures) int { return cmp.Compare(b.Connections, a.Connections) },
	"pushes":      func(a, b figures) int { return cmp.Compare(b.Pushes, a.Pushes) },
	"deliveries":  func(a, b figures) int { return cmp.Compare(b.Deliveries, a.Deliveries) },
}

// sample is what the broker answers to one round of calls.
type sample struct {
	at      time.Time
	self    backend.Self
	servers []backend.Server
	stats   backend.Stats
	users   backend.UserPage
	health  backend.HealthReport
}

// take makes one round of calls, at the same time.
func take(ctx context.Context, sb *backend.Client) (s sample, err error) {
	if s.self, err = sb.Self(ctx); err != nil {
		return s, err
	}
	group, inner := errgroup.WithContext(ctx)
	group.Go(func() (err error) { s.servers, err = sb.Servers(inner); return err })
	group.Go(func() (err error) { s.stats, err = sb.Stats(inner); return err })
	group.Go(func() (err error) { s.users, err = sb.UserCount(inner); return err })
	group.Go(func() (err error) { s.health, err = sb.Health(inner); return err })
	err = group.Wait()
	s.at = time.Now()
	return s, err
}

// read compares two samples.
func (s sample) read(before sample, order string) reading {
	r := reading{At: s.at.UnixMilli(), Health: s.health.Status, Servers: []figures{}}
	old := map[string]backend.ServerStats{}
	for _, one := range before.stats.Servers {
		old[one.Server] = one
	}
	now := map[string]backend.ServerStats{}
	for _, one := range s.stats.Servers {
		now[one.Server] = one
	}
	newest := int64(0) // by the clock of the store: that of this machine may be wrong
	for _, server := range s.servers {
		newest = max(newest, server.LastActive)
	}
	for _, server := range s.servers {
		f := figures{Server: server.Server, Health: healthy, Late: newest - server.LastActive}
		if stats, answered := now[server.Server]; answered {
			f.count(stats, old[server.Server])
		} else {
			f.Connections, f.Users, f.Channels = server.Connections, server.Users, server.Channels
		}
		for _, finding := range s.health.Findings {
			if finding.Subject == server.Server {
				f.Health = finding.Code
				break
			}
		}
		r.Servers = append(r.Servers, f)
		r.Total.add(f)
	}
	slices.SortStableFunc(r.Servers, orders[order])
	r.Total.Users = int64(s.users.Count)
	if s.users.Distinct != nil { // a user with devices on two instances counts once
		r.Total.Users = int64(*s.users.Distinct)
	}
	for _, finding := range s.health.Findings {
		r.Problems = append(r.Problems, strings.TrimSpace(finding.Subject+" "+finding.Code))
	}
	return r
}

// count sets the figures of an instance, with rates since before. A restart sets counters to 0.
func (f *figures) count(now, before backend.ServerStats) {
	f.Connections, f.Users, f.Channels = now.Connections, now.Users, now.Channels
	f.Append, f.Drain, f.RSS = now.Append, now.Drain, now.RSS
	seconds := float64(now.At-before.At) / 1000
	if before.StartedAt != now.StartedAt || seconds <= 0 {
		return
	}
	f.Pushes = float64(now.Pushes-before.Pushes) / seconds
	f.Errors = float64(now.PushErrors-before.PushErrors) / seconds
	f.Deliveries = float64(now.Delivered-before.Delivered) / seconds
}

// add adds the figures of an instance. The latencies of all are those of the slowest one.
func (f *figures) add(g figures) {
	f.Connections += g.Connections
	f.Channels = max(f.Channels, g.Channels) // a channel may have subscribers on several instances
	f.Pushes, f.Errors, f.Deliveries = f.Pushes+g.Pushes, f.Errors+g.Errors, f.Deliveries+g.Deliveries
	f.Append, f.Drain = slower(f.Append, g.Append), slower(f.Drain, g.Drain)
	f.RSS += g.RSS
}

func slower(a, b backend.Duration) backend.Duration {
	if b.P99 > a.P99 {
		return b
	}
	return a
}

// top prints a reading after each interval.
func (a *app) top(ctx context.Context, sb *backend.Client, f topFlags) error {
	before, err := take(ctx, sb)
	if err != nil {
		return err
	}
	live := a.screen.Terminal && !f.once
	draw := func(r reading, failed error) {
		a.screen.Draw(func(height int) { a.drawTop(sb.URL(), r, height, failed) })
	}
	if live {
		defer a.screen.Live()()
		draw(before.read(before, f.sort), nil)
	}
	tick := time.NewTicker(f.interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now, err := take(ctx, sb)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && (!live || exitCode(err) != exitUnavailable):
			return err
		case err != nil: // a live table stays, and says that it is old
			draw(before.read(before, f.sort), err)
			continue
		}
		r := now.read(before, f.sort)
		before = now
		if live {
			draw(r, nil)
		} else {
			a.screen.Value(r, func() { a.printTop(r) })
		}
		switch {
		case a.screen.Err() != nil:
			return a.screen.Err()
		case f.once && r.Health == problem:
			return errDone(exitFailed)
		case f.once:
			return nil
		}
	}
}

var topHeader = []string{"server", "health", "connections", "users", "channels", "pushes/s", "errors/s", "deliveries/s", "drain p50/p99", "append p50/p99", "rss"}

func (f figures) row() []screen.Cell {
	color := screen.Green
	if f.Health != healthy && f.Health != "" {
		color = screen.Red
	}
	return []screen.Cell{
		{Text: f.Server, Color: screen.Bold}, {Text: f.Health, Color: color},
		screen.Number(f.Connections), screen.Number(f.Users), screen.Number(f.Channels),
		{Text: rate(f.Pushes), Right: true}, {Text: rate(f.Errors), Right: true}, {Text: rate(f.Deliveries), Right: true},
		{Text: latency(f.Drain), Right: true}, {Text: latency(f.Append), Right: true}, {Text: megabytes(f.RSS), Right: true},
	}
}

func rate(perSecond float64) string {
	if perSecond == 0 || perSecond >= 100 {
		return fmt.Sprintf("%.0f", perSecond)
	}
	return fmt.Sprintf("%.1f", perSecond)
}

func (r reading) rows() [][]screen.Cell {
	rows := make([][]screen.Cell, 0, len(r.Servers)+1)
	for _, f := range r.Servers {
		rows = append(rows, f.row())
	}
	total := r.Total
	total.Server, total.Health = "total", r.Health
	return append(rows, total.row())
}

// printTop prints a reading as lines, or as one table on a terminal.
func (a *app) printTop(r reading) {
	rows := r.rows()
	if !a.screen.Terminal {
		for i, row := range rows {
			rows[i] = append([]screen.Cell{{Text: number(r.At)}}, row...)
		}
	}
	a.screen.Table(topHeader, rows)
	for _, problem := range r.Problems {
		a.note("%s", problem)
	}
}

// drawTop prints the picture of a terminal with height lines. failed is why it is old, or nil.
func (a *app) drawTop(where string, r reading, height int, failed error) {
	a.screen.Text("%s   %s   %s", where, time.UnixMilli(r.At).Format(time.TimeOnly), count(len(r.Servers), "instance"))
	a.screen.Text("")
	rows := r.rows()
	fits := max(2, height-6-len(r.Problems))
	if hidden := len(rows) - fits; hidden > 0 {
		rows = append(rows[:fits-1], rows[len(rows)-1])
		a.screen.Text("(%d instances do not fit)", hidden)
	}
	a.screen.Table(topHeader, rows)
	a.screen.Text("")
	if failed != nil {
		a.screen.Line(screen.Cell{Text: failed.Error(), Color: screen.Red})
	}
	for _, problem := range r.Problems {
		a.screen.Line(screen.Cell{Text: problem, Color: screen.Red})
	}
}
