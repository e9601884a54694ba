//go:build long

package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"syscall"
	"testing"

	"switchboard/internal/await"
	"switchboard/internal/keytable"
	"switchboard/internal/testbed"
)

const (
	sdkInNode, sdkInPage, sdkInNative = 12, 4, 2

	sdkState, sdkTotal = "sdk-state", "sdk-total"
)

// An sdkPlan is the plan of js/sdk.js.
type sdkPlan struct {
	clientPlan
	Role  string `json:"role"`
	State string `json:"state"` // a channel with a state that the backend changes
	Total string `json:"total"` // a channel with a state that the clients change
}

// TestJavaScriptClient runs clients of client/js in Node, in Chromium and in Hermes as a React
// Native application, which is suspended once. They receive messages of channels, of their inboxes
// and to all clients, and changes of a state. Meanwhile one broker is killed and another one is
// drained. Each handler must see each message once and in order, without a gap, and each
// transaction of a client must count once.
func TestJavaScriptClient(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	logf := timedLog(t)
	d := deploy(t, 3, "SWITCHBOARD_DRAIN_TIME=1s")
	plans := planSDK(d.brokers)
	streams := sdkStreams(plans)
	l := newLedger(streams)
	exit, leavePage := context.WithCancel(ctx)
	defer leavePage()
	native, nativeInput := startNative(ctx, t, plans[:sdkInNative], l)
	node, input := startNode(t, plans[sdkInNative:sdkInNative+sdkInNode], l)
	chromium := startPage(exit, t, plans[sdkInNative+sdkInNode:], l)
	allConnected := func() bool { return len(l.server) == len(plans) }
	l.waitFor(ctx, t, "all clients connect", allConnected)
	logf("all clients are connected")

	p := newPusher(d.brokers, l)
	pushed := make(chan struct{})
	go func() {
		defer close(pushed)
		p.run(ctx, streams)
	}()
	l.waitFor(ctx, t, "a sixth of the pushes is accepted", func() bool { return l.pushes >= len(streams)*perStream/6 })
	write(t, nativeInput, "background\n")
	end(ctx, t, d.brokers[0], syscall.SIGKILL)
	l.waitFor(ctx, t, "a fifth of the pushes is accepted", func() bool { return l.pushes >= len(streams)*perStream/5 })
	write(t, nativeInput, "foreground\n")
	l.waitFor(ctx, t, "the clients of the killed broker resume", func() bool { return l.countAtLocked(d.brokers[0].ID) == 0 && allConnected() })
	l.waitFor(ctx, t, "a third of the pushes is accepted", func() bool { return l.pushes >= len(streams)*perStream/3 })
	end(ctx, t, d.brokers[1], syscall.SIGTERM)
	l.waitFor(ctx, t, "the clients of the drained broker resume", func() bool { return l.countAtLocked(d.brokers[1].ID) == 0 && allConnected() })
	logf("one broker was killed and one was drained")
	close(p.lastThird)
	<-pushed
	l.waitFor(ctx, t, "every message arrives", func() bool { return len(l.arrived) == perStream*len(l.expected) })
	logf("%d pushes, %d messages; %d attempts failed", l.pushes, len(l.arrived), p.failedAttempts.Load())

	want := len(plans) * perStream / 6
	await.NoError(ctx, t, "every transaction counts once", func() error { return checkTotal(ctx, d.brokers[2], want) })
	await.NoError(ctx, t, "every message is acknowledged", func() error { return keytable.CheckEmpty(ctx, d.redis, keytable.ClientQueues) })
	leavePage()
	write(t, input, "leave\n")
	write(t, nativeInput, "leave\n")
	l.waitFor(ctx, t, "all clients leave", func() bool { return l.left == len(plans) })
	l.compareIDs(t)
	if err := checkTotal(ctx, d.brokers[2], want); err != nil {
		t.Error(err)
	}
	end(ctx, t, chromium, syscall.SIGTERM)
	exits(ctx, t, "node", node, input)
	exits(ctx, t, "hermes", native, nativeInput)
}

// exits ends the input of a script, and waits until it exits with 0.
func exits(ctx context.Context, t *testing.T, name string, script *testbed.Process, input io.Closer) {
	t.Helper()
	if err := input.Close(); err != nil {
		t.Fatal(err)
	}
	if code, err := script.Wait(ctx); err != nil || code != 0 {
		t.Errorf("%s exited with %d (%v), want 0", name, code, err)
	}
}

func write(t *testing.T, w io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
}

func planSDK(brokers []*testbed.Broker) (plans []sdkPlan) {
	for i := range sdkInNode + sdkInPage + sdkInNative {
		user := userOf(i)
		plan := clientPlan{Client: user + "/sdk", User: user, Channels: []string{roomOf(i % 2), "sdk-news"}}
		for k := range brokers {
			plan.URLs = append(plan.URLs, kind(k%2).url(brokers[k], i))
		}
		plans = append(plans, sdkPlan{plan, "sdk", sdkState, sdkTotal})
	}
	return plans
}

func sdkStreams(plans []sdkPlan) (streams []stream) {
	var all []string
	for _, plan := range plans {
		all = append(all, plan.Client)
		streams = append(streams, stream{plan.User, map[string]any{"user": plan.User}, []string{plan.Client}})
	}
	return append(streams,
		stream{"all", map[string]any{"all": true}, all},
		stream{"news", map[string]any{"channel": "sdk-news"}, all},
		stream{"state", map[string]any{"channel": sdkState, "add": map[string]int{"n": 1}}, all},
	)
}

// checkTotal compares the number that the clients have counted with want.
func checkTotal(ctx context.Context, b *testbed.Broker, want int) error {
	var answer struct{ Fields map[string][2]int64 }
	if err := b.Call(ctx, http.MethodGet, "/v1/channels/"+sdkTotal+"/state", nil, &answer); err != nil {
		return err
	}
	if got := answer.Fields["n"][1]; got != int64(want) {
		return fmt.Errorf("the clients counted %d, want %d", got, want)
	}
	return nil
}
