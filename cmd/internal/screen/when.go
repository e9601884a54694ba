package screen

import (
	"fmt"
	"time"
)

// When returns a time in Unix ms: for people its distance from now, like 3m12s, and otherwise the
// time itself (RFC 3339). 0 is "".
func (s *Screen) When(ms int64, now time.Time) string {
	if ms == 0 {
		return ""
	}
	t := time.UnixMilli(ms)
	if !s.Terminal {
		return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
	}
	if d := now.Sub(t); d >= 0 {
		return Short(d) + " ago"
	}
	return "in " + Short(t.Sub(now))
}

// Short returns a duration with at most two units, like 3m12s or 2d4h.
func Short(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < day:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%dh", int(d/day), int(d.Hours())%24)
}
