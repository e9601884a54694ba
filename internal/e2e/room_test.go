//go:build long

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"switchboard/internal/cond"
)

const (
	roomUsers   = 8
	roomDevices = 2 // of each user
	roomMembers = 4
	roomRounds  = 30 // actions of each device
)

// roomSettings limit the members of a room. A member that leaves stays for the grace period.
const roomSettings = `SWITCHBOARD_NAMESPACES={"room:*": {subscribe: users, state: users, grace: 300ms, ` +
	`fields: {"member/{user}": {write: users, own: always, max: 4}}}}`

// roomLedger collects what the devices report.
type roomLedger struct {
	cond.Cond // guards the fields below
	entered   map[string]event
	full      []event // refusals
	closed    int     // connections
	left      int
	failures  []string
}

func (l *roomLedger) fail(format string, args ...any) {
	l.Change(func() { l.failures = append(l.failures, fmt.Sprintf(format, args...)) })
}

func (l *roomLedger) record(e event) {
	l.Change(func() {
		switch e.Event {
		case "ready", "done":
		case "closing", "closed":
			l.closed++
		case "entered":
			l.entered[fmt.Sprint(e.Field, " ", e.ID)] = e
		case "full":
			l.full = append(l.full, e)
		case "left":
			l.left++
		default:
			l.failures = append(l.failures, fmt.Sprintf("%s: %+v", e.Client, e))
		}
	})
}

// waitForAll waits until n devices have left. A failure of any device ends the test at once.
func (l *roomLedger) waitForAll(ctx context.Context, t *testing.T, n int) {
	t.Helper()
	err := l.Await(ctx, func() bool { return len(l.failures) > 0 || l.left == n })
	l.Lock()
	defer l.Unlock()
	for _, problem := range l.failures[:min(len(l.failures), 10)] {
		t.Error(problem)
	}
	if err != nil || len(l.failures) > 0 {
		t.Fatalf("%d of %d devices have left: %v", l.left, n, err)
	}
}

// TestRoom lets 16 devices of 8 users enter and leave a room for 4 at random: their connections
// end, are replaced, or the devices unsubscribe or remove their field. At no id of the log may the
// room have 5 members. A refusal must show 4 members that the room had, not before the last message
// that the refused device had received.
func TestRoom(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	logf := timedLog(t)
	d := deploy(t, 3, roomSettings)
	log := follow(ctx, t, d.brokers[0], "room:1")
	l := &roomLedger{entered: map[string]event{}}
	var plans []statePlan
	for i := range roomUsers * roomDevices {
		user := userOf(i / roomDevices)
		plan := statePlan{
			Role: "member", Client: fmt.Sprintf("%s/device-%d", user, i), User: user, Channel: "room:1",
			Max: roomMembers, Rounds: roomRounds,
		}
		for k := range d.brokers {
			plan.URLs = append(plan.URLs, kind(i%2).url(d.brokers[(i+k)%len(d.brokers)], i))
		}
		plans = append(plans, plan)
	}
	_, input := startNode(t, plans, l)
	defer input.(io.Closer).Close()
	l.waitForAll(ctx, t, len(plans))
	logf("all devices have left; %d entered, %d were refused as full, %d connections ended before", len(l.entered), len(l.full), l.closed)

	fold := fieldIDs{}
	log.await(ctx, t, "the room becomes empty", func(messages []stateMessage) bool {
		clear(fold)
		for _, m := range messages {
			fold.apply(m)
		}
		return len(fold) == 0
	})
	logf("the room is empty after %d messages", len(log.messages))
	l.check(t, log)

	for i := range roomMembers {
		change(ctx, t, d.brokers[1], fmt.Sprintf(`{"channel":"room:1","set":{"member/new-%d":1}}`, i))
	}
	status, text := call(ctx, t, d.brokers[2], http.MethodPost, "/v1/push", `{"channel":"room:1","set":{"member/new-5":1}}`)
	if status != http.StatusConflict || !strings.Contains(text, `"full"`) {
		t.Errorf("a fifth member: %d %s", status, text)
	}
}

// check compares what the devices saw with the log.
func (l *roomLedger) check(t *testing.T, log *follower) {
	t.Helper()
	full := map[string]int64{} // members and their ids, with the id up to which the room had them
	fold, kept := fieldIDs{}, map[string]bool{}
	for i, m := range log.messages {
		if i > 0 && m.ID <= log.messages[i-1].ID {
			t.Errorf("id %d follows %d", m.ID, log.messages[i-1].ID)
		}
		before := fold.list()
		if len(fold) == roomMembers {
			full[before] = m.ID - 1
		}
		for name := range m.Gone {
			if m.Gone[name] != "left" {
				t.Errorf("%s is gone: %s", name, m.Gone[name])
			}
		}
		fold.apply(m)
		for name := range m.Set {
			kept[fmt.Sprint(name, " ", m.ID)] = true
		}
		if len(fold) > roomMembers {
			t.Errorf("%d members at id %d", len(fold), m.ID)
		}
	}
	for what, e := range l.entered {
		if !kept[what] {
			t.Errorf("%s: the publish of %s is not in the log", e.Client, what)
		}
	}
	for _, e := range l.full {
		var fields map[string]field
		if err := json.Unmarshal([]byte(e.Detail), &fields); err != nil {
			t.Fatal(err)
		}
		shown := fieldIDs{}
		for name, f := range fields {
			shown[name] = f.id()
		}
		if until, found := full[shown.list()]; !found || until < e.ID {
			t.Errorf("%s was refused with %d members %v; at that time the room did not have these: its position was %d, they stayed until %d",
				e.Client, len(shown), maps.Keys(shown), e.ID, until)
		}
	}
	if len(l.full) == 0 || l.closed < roomUsers*roomDevices {
		t.Errorf("%d refusals, %d connections ended: the test did not test much", len(l.full), l.closed)
	}
}
