package health

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"switchboard/janitor/heartbeat"
)

const (
	// janitorLate is the age of a janitor's last report above which it counts as ended.
	janitorLate = 30 * time.Second
	// onceLate is janitorLate for a janitor that cron starts.
	onceLate = time.Hour
	// roundLate is how much later than three intervals a round may be complete.
	roundLate = 30 * time.Second
	// eventLate is the age of the oldest event that waits above which the backend is slow.
	eventLate = time.Minute
)

// janitors returns the findings about janitors.
func (f *Facts) janitors() (found []Finding) {
	if !f.Shared {
		return nil // the broker has one inside
	}
	now := f.latestHeartbeat() // the reports have times of the store's clock, too
	working, sending := 0, 0
	for _, j := range f.Janitors {
		age := now.Sub(j.Seen)
		if j.Once && age < onceLate || !j.Once && age < janitorLate {
			working++
			if j.Webhooks {
				sending++
			}
			found = append(found, lateRounds(j)...)
		} else if !j.Once && age < recent {
			found = append(found, Finding{
				Level: Warning, Code: "janitor_died", Subject: j.ID, At: j.Seen.UnixMilli(),
				Message: "A janitor has ended without saying so.",
				Remedy:  "Look at the end of its log.",
			})
		}
	}
	if working == 0 && !f.JanitorsUnknown {
		found = append(found, Finding{
			Level: Problem, Code: "janitor_absent",
			Message: "No janitor runs. Users of a dead broker stay online, channels are not trimmed, and no events are sent.",
			Remedy:  "Start one with the Redis and the prefix of the brokers: janitor --redis URL. Update janitors that do not report yet.",
		})
	}
	if f.Webhooks != nil && working > 0 && sending == 0 {
		found = append(found, Finding{
			Level: Problem, Code: "janitor_without_webhooks",
			Message: "The brokers record events, but no janitor sends them: none has a webhooks.url.",
			Remedy:  "Give the janitors the webhooks.url and the webhooks.secrets of the brokers.",
		})
	}
	return found
}

// lateRounds returns the findings about the rounds of a janitor that works.
func lateRounds(j heartbeat.Janitor) []Finding {
	var late, failing []string
	for _, kind := range slices.Sorted(maps.Keys(j.Rounds)) {
		r := j.Rounds[kind]
		idle := time.Duration(r.Idle) * time.Millisecond
		switch most := time.Duration(3*r.Every)*time.Millisecond + roundLate; {
		case r.Failed > 1:
			failing = append(failing, fmt.Sprintf("%s (%d times)", kind, r.Failed))
		case r.Every > 0 && idle > most:
			late = append(late, fmt.Sprintf("%s (%v ago)", kind, idle.Round(time.Second)))
		}
	}
	var found []Finding
	if len(failing) > 0 {
		found = append(found, Finding{
			Level: Problem, Code: "janitor_failing", Subject: j.ID,
			Message: "Its rounds fail: " + strings.Join(failing, ", ") + ".",
			Remedy:  "Its log has the errors.",
		})
	}
	if len(late) > 0 {
		found = append(found, Finding{
			Level: Problem, Code: "janitor_late", Subject: j.ID,
			Message: "Rounds are late; they were last complete: " + strings.Join(late, ", ") + ".",
			Remedy:  "Start another janitor, and look at the CPU of this one and of Redis.",
		})
	}
	return found
}

// webhooks returns the findings about the events for the backend.
func (f *Facts) webhooks() (found []Finding) {
	w := f.Webhooks
	if w == nil {
		return nil
	}
	switch {
	case w.Attempts > 0:
		answer := w.Error
		if w.Status > 0 {
			answer = fmt.Sprintf("the answer %d", w.Status)
		}
		next := Finding{
			Level: Problem, Code: "webhooks_failing", Subject: w.URL,
			Message: fmt.Sprintf("Your backend does not accept events. Attempts that have failed: %d, the last one with %s. Events that wait: %d.", w.Attempts, answer, w.Waiting),
			Remedy:  "Repair the backend. The events are sent again by themselves, for webhooks.max_age.",
		}
		if !w.RetryAt.IsZero() {
			next.At = w.RetryAt.UnixMilli()
		}
		found = append(found, next)
	case !w.Oldest.IsZero() && f.Now.Sub(w.Oldest) > eventLate:
		found = append(found, Finding{
			Level: Problem, Code: "webhooks_late", Subject: w.URL, At: w.Oldest.UnixMilli(),
			Message: fmt.Sprintf("Events that wait: %d, the oldest for more than a minute.", w.Waiting),
			Remedy:  "Make the backend answer sooner: it can work after the answer. Or start another janitor.",
		})
	}
	if w.Dead > 0 {
		found = append(found, Finding{
			Level: Problem, Code: "dead_letters", Subject: w.URL,
			Message: fmt.Sprintf("Events that could not be delivered, and are no longer sent: %d.", w.Dead),
			Remedy:  "See why with `switchboard webhooks dead`. Then send them again, or drop them: switchboard webhooks retry, drop.",
		})
	}
	return found
}
