package health

import (
	"fmt"
	"slices"
	"time"

	"switchboard/registry"
)

// recent is how long a death is shown.
const recent = time.Hour

// servers returns the findings about servers that died, or that are about to.
func (f *Facts) servers() (found []Finding) {
	for _, d := range f.Died {
		if f.Now.Sub(d.At) > recent || f.listed(d.Server) {
			continue
		}
		found = append(found, Finding{
			Level: Warning, Code: "server_died", Subject: d.Server, At: d.At.UnixMilli(),
			Message: "A broker has ended without saying so. Its clients have connected to others, or could not.",
			Remedy:  "Look at the end of its log, and at what the system has killed: memory, a failed probe, the host.",
		})
	}
	for _, id := range f.Listed {
		if f.leased(id) {
			continue
		}
		found = append(found, Finding{
			Level: Problem, Code: "server_gone", Subject: id,
			Message: "A broker has no heartbeat. A janitor has not yet removed what it held, so its users still look bound to it.",
			Remedy:  "Start a broker in its place. A running janitor removes the rest within some 16 s.",
		})
	}
	latest := f.latestHeartbeat()
	for _, s := range f.Servers {
		if late := latest.Sub(s.LastActive); late > f.Lease/2 {
			found = append(found, Finding{
				Level: Problem, Code: "server_late", Subject: s.ID, At: s.LastActive.UnixMilli(),
				Message: fmt.Sprintf("Its last heartbeat is %v older than that of another broker. Without one for %v it loses its clients.", late.Round(time.Second), f.Lease),
				Remedy:  "Look at its CPU, and at its connection to Redis.",
			})
		}
	}
	for _, id := range f.Silent {
		found = append(found, Finding{
			Level: Problem, Code: "server_silent", Subject: id,
			Message: "It has a heartbeat, but does not answer this broker. Messages reach its clients late, and numbers of all servers are too low.",
			Remedy:  "Open its peer port to the other brokers, and give all the same peer_secret and peer_tls.",
		})
	}
	return found
}

// latestHeartbeat returns the latest heartbeat of a server. It is about the present time on the
// clock of the store, which differs from that of this server.
func (f *Facts) latestHeartbeat() (latest time.Time) {
	for _, s := range f.Servers {
		if s.LastActive.After(latest) {
			latest = s.LastActive
		}
	}
	return latest
}

func (f *Facts) listed(id string) bool { return slices.Contains(f.Listed, id) }

func (f *Facts) leased(id string) bool {
	return slices.ContainsFunc(f.Servers, func(s registry.Server) bool { return s.ID == id })
}

// loads returns the findings about limits and certificates of servers.
func (f *Facts) loads() (found []Finding) {
	for _, l := range f.Loads {
		if l.MaxConnections > 0 && l.Connections*10 >= l.MaxConnections*9 {
			level := Warning
			if l.Connections >= l.MaxConnections {
				level = Problem
			}
			found = append(found, Finding{
				Level: level, Code: "connections_limit", Subject: l.Server,
				Message: fmt.Sprintf("It has %d connections of at most %d. It refuses more.", l.Connections, l.MaxConnections),
				Remedy:  "Start another broker, or raise limits.connections and the limit of open files.",
			})
		}
		if left := l.Certificate.Sub(f.Now); !l.Certificate.IsZero() && left < 14*24*time.Hour {
			level := Warning
			if left < 3*24*time.Hour {
				level = Problem
			}
			found = append(found, Finding{
				Level: level, Code: "certificate_ends", Subject: l.Server, At: l.Certificate.UnixMilli(),
				Message: "Its certificate ends at " + l.Certificate.UTC().Format(time.RFC3339) + ".",
				Remedy:  "Renew the files. The broker reads them again every few seconds.",
			})
		}
	}
	return found
}

// redis returns the findings about the memory of Redis.
func (f *Facts) redis() (found []Finding) {
	for _, m := range f.Redis {
		if m.Policy != "" && m.Policy != "noeviction" {
			found = append(found, Finding{
				Level: Problem, Code: "redis_evicts", Subject: m.Server,
				Message: "Its maxmemory-policy is " + m.Policy + ": when it is full, it deletes messages without notice.",
				Remedy:  "Set maxmemory-policy to noeviction.",
			})
		}
		if m.Max > 0 && m.Used*10 >= m.Max*8 {
			level := Warning
			if m.Used*100 >= m.Max*95 {
				level = Problem
			}
			found = append(found, Finding{
				Level: level, Code: "redis_memory", Subject: m.Server,
				Message: fmt.Sprintf("It uses %d MiB of %d MiB. When it is full, it refuses messages.", m.Used>>20, m.Max>>20),
				Remedy:  "Raise maxmemory, keep less (history_messages, history_age, queue_messages), or let a janitor trim more often.",
			})
		}
	}
	return found
}
