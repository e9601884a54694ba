//go:build long

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"switchboard/client"
	"switchboard/client/account"
	"switchboard/internal/await"
	"switchboard/internal/redistest"
	"switchboard/internal/signedreq"
	"switchboard/internal/testbed"
)

var faultRooms = flag.Int("rooms", 120, "rooms of TestKitFaults")

const (
	accountCount = 40
	roomPlaces   = 4
	password     = "correct horse"
)

// kitFaults is three brokers with accounts and rooms over Redis with a replica. The backend
// receives an event for each room that has ended.
type kitFaults struct {
	*testing.T
	*deployment
	sentinel *redistest.Sentinel
	ended    *endedRooms
}

// endedRooms is a backend that receives the events room_ended.
type endedRooms struct {
	mu     sync.Mutex // guards the fields below
	ids    map[string]bool
	events map[string][]endedRoom // by room
}

// An endedRoom is the content of an event.
type endedRoom struct {
	Room   string
	Reason string
	Final  roomInfo
}

// A roomInfo is what the backend sees of a room.
type roomInfo struct {
	Members []struct {
		N    int
		User string
	}
}

// numbers returns the numbers of the members, sorted.
func (i roomInfo) numbers() (list []int) {
	for _, m := range i.Members {
		list = append(list, m.N)
	}
	slices.Sort(list)
	return list
}

func (e *endedRooms) receive(r *http.Request) error {
	var delivery struct {
		Events []struct {
			ID, Type string
			endedRoom
		}
	}
	if err := signedreq.Decode(r, webhookSecret, &delivery); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, event := range delivery.Events {
		if event.Type != "room_ended" {
			return fmt.Errorf("received an event %s", event.Type)
		}
		if !e.ids[event.ID] {
			e.ids[event.ID] = true
			e.events[event.Room] = append(e.events[event.Room], event.endedRoom)
		}
	}
	return nil
}

// uncertain reports whether the outcome of a call is not known, so that it may be repeated.
func uncertain(err error) bool {
	e, ok := errors.AsType[*client.Error](err)
	return err != nil && (!ok || e.Code == client.Unavailable)
}

// register lets two devices register each name at once, on different brokers, with passwords of
// their own. It returns the password that holds each name. halfway is called when half of the
// names are registered.
func (k *kitFaults) register(ctx context.Context, prefix string, halfway func()) map[string]string {
	k.Helper()
	var mu sync.Mutex
	acknowledged := map[string]string{} // password by name
	attempt := func(name, secret string, b *testbed.Broker) {
		accounts, err := account.New(account.Options{URL: "http://" + b.HTTP})
		if err != nil {
			k.Error(err)
			return
		}
		for {
			_, err = accounts.Register(ctx, account.Registration{Name: name, Password: secret})
			if !uncertain(err) || ctx.Err() != nil {
				break
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			if other := acknowledged[name]; other != "" {
				k.Errorf("%s is registered twice", name)
			}
			if acknowledged[name] = secret; len(acknowledged) == accountCount/2 {
				halfway()
			}
		} else if e, ok := errors.AsType[*client.Error](err); !ok || e.Code != client.Conflict {
			k.Errorf("register %s: %v", name, err)
		}
	}
	var wg sync.WaitGroup
	for i := range accountCount {
		for device := range 2 {
			wg.Go(func() {
				attempt(fmt.Sprint(prefix, i), fmt.Sprint(password, device), k.brokers[(i+device)%len(k.brokers)])
			})
		}
	}
	wg.Wait()
	owners, free := map[string]string{}, 0
	for i := range accountCount {
		name := fmt.Sprint(prefix, i)
		for device := range 2 {
			secret := fmt.Sprint(password, device)
			if _, err := k.login(ctx, name, secret); err == nil {
				if owners[name] != "" {
					k.Errorf("two passwords open %s", name)
				}
				owners[name] = secret
			}
		}
		if owners[name] == "" {
			free++ // both devices conflicted with a claim whose registration was not answered
		}
		if owners[name] != acknowledged[name] && acknowledged[name] != "" {
			k.Errorf("%s was acknowledged for %q, and opens with %q", name, acknowledged[name], owners[name])
		}
	}
	k.Logf("%d of %d names are registered", accountCount-free, accountCount)
	if free > accountCount/2 {
		k.Errorf("%d names are still free", free)
	}
	return owners
}

// login logs in on the first broker. It repeats calls without an answer.
func (k *kitFaults) login(ctx context.Context, name, secret string) (*account.Session, error) {
	accounts, err := account.New(account.Options{URL: "http://" + k.brokers[0].HTTP})
	for err == nil && ctx.Err() == nil {
		var s *account.Session
		if s, err = accounts.LoginByPassword(ctx, account.Credentials{Name: name, Password: secret}); !uncertain(err) {
			return s, err
		}
		err = nil
	}
	return nil, errors.Join(err, ctx.Err())
}

// connect connects the devices of the accounts, to all brokers in turn.
func (k *kitFaults) connect(ctx context.Context, owners map[string]string) (players []*client.Client) {
	k.Helper()
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	k.Cleanup(func() { cancel(); running.Wait() })
	for name, secret := range owners {
		session, err := k.login(ctx, name, secret)
		if err != nil {
			k.Fatal(err)
		}
		o := client.Options{Client: "tab", TokenSource: session.Token, BackoffMin: 20 * time.Millisecond}
		for i := range k.brokers {
			o.URLs = append(o.URLs, kind(i%2).url(k.brokers[(len(players)+i)%len(k.brokers)], len(players)))
		}
		c, err := client.New(o)
		if err != nil {
			k.Fatal(err)
		}
		running.Go(func() {
			if err := c.Run(ctx); err != nil {
				k.Errorf("%s: %v", name, err)
			}
		})
		players = append(players, c)
	}
	return players
}

// play lets all players join and leave rooms at random. The faults happen after equal shares of
// the operations.
func (k *kitFaults) play(ctx context.Context, players []*client.Client, ids []string, faults ...func()) {
	var steps, joins, full, repeated atomic.Int64
	total := int64(len(ids)) * roomPlaces * 4
	var wg sync.WaitGroup
	for _, p := range players {
		wg.Go(func() {
			for n := steps.Add(1); n <= total && ctx.Err() == nil; n = steps.Add(1) {
				if share := total / int64(len(faults)+1); n%share == 0 && int(n/share) <= len(faults) {
					faults[n/share-1]()
				}
				id, method := ids[rand.IntN(len(ids))], "room.join"
				if rand.IntN(3) == 0 {
					method = "room.leave"
				}
				err := p.Call(ctx, method, map[string]string{"room": id}, nil)
				e, ok := errors.AsType[*client.Error](err)
				switch {
				case err == nil:
					joins.Add(1)
				case uncertain(err):
					repeated.Add(1)
				case ok && e.Code == client.Full:
					full.Add(1)
				case !ok || e.Code != client.NotFound && e.Code != client.RateLimited:
					k.Errorf("%s %s: %v", method, id, err)
				}
			}
		})
	}
	wg.Wait()
	k.Logf("%d joins and leaves, %d refused as full, %d without an answer", joins.Load(), full.Load(), repeated.Load())
	if full.Load() == 0 || repeated.Load() == 0 {
		k.Error("the test did not test much")
	}
}

// checkRooms reads the log of each room: at no id it has more members than places.
func (k *kitFaults) checkRooms(ctx context.Context, ids []string) {
	k.Helper()
	for _, id := range ids {
		fold := fieldIDs{}
		for _, m := range readLog(ctx, k.T, k.brokers[0], "room:"+id) {
			fold.apply(m)
			if n := len(fold.group("member/")); n > roomPlaces {
				k.Errorf("room %s has %d members at id %d", id, n, m.ID)
			}
		}
		numbers, users := map[int]bool{}, map[string]bool{}
		for _, m := range k.room(ctx, id).Members {
			if numbers[m.N] || users[m.User] {
				k.Errorf("room %s has number %d or user %s twice", id, m.N, m.User)
			}
			numbers[m.N], users[m.User] = true, true
		}
	}
}

func (k *kitFaults) room(ctx context.Context, id string) (info roomInfo) {
	k.Helper()
	status, text := call(ctx, k.T, k.brokers[0], http.MethodGet, "/v1/rooms/"+id, "")
	if err := json.Unmarshal([]byte(text), &info); err != nil || status != http.StatusOK {
		k.Fatalf("room %s: %d %s (%v)", id, status, text, err)
	}
	return info
}

// awaitAgreement waits until `janitor check` finds nothing: the lists agree with the rooms.
func (k *kitFaults) awaitAgreement(ctx context.Context) {
	k.Helper()
	await.NoError(ctx, k.T, "janitor check finds nothing", func() error {
		out, err := exec.Command(filepath.Join(binaries, "janitor"), "check", "--redis", k.sentinel.URL()).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %.500s", err, out)
		}
		return nil
	})
}

// deleteRooms ends all rooms. The broker that is asked is killed on the way. The backend must
// receive one event for each room, with its last members.
func (k *kitFaults) deleteRooms(ctx context.Context, ids []string) {
	k.Helper()
	last := map[string]roomInfo{}
	for _, id := range ids {
		last[id] = k.room(ctx, id)
	}
	for i, id := range ids {
		if i == len(ids)/2 {
			end(ctx, k.T, k.brokers[0], syscall.SIGKILL)
			k.brokers = k.brokers[1:]
		}
		await.NoError(ctx, k.T, "the room is deleted", func() error {
			status, text, err := k.brokers[0].Do(ctx, http.MethodDelete, "/v1/rooms/"+id, "")
			if err == nil && status != http.StatusOK && status != http.StatusNotFound {
				err = fmt.Errorf("%d %s", status, text)
			}
			return err
		})
	}
	await.NoError(ctx, k.T, "the backend learns the end of each room", func() error {
		k.ended.mu.Lock()
		defer k.ended.mu.Unlock()
		for _, id := range ids {
			if len(k.ended.events[id]) == 0 {
				return fmt.Errorf("room %s has no event", id)
			}
		}
		return nil
	})
	for i, id := range ids {
		events := k.ended.events[id]
		if len(events) != 1 || events[0].Reason != "deleted" {
			k.Errorf("room %s: events %+v", id, events)
			continue
		}
		final, before := events[0].Final.numbers(), last[id].numbers()
		joined := slices.ContainsFunc(final, func(n int) bool { return !slices.Contains(before, n) })
		if joined || len(final) != len(before) && i < len(ids)/2 { // members leave with the killed broker
			k.Errorf("room %s ended with members %v, it had %v", id, final, before)
		}
	}
}

// TestKitFaults registers accounts and lets them play in rooms, on three brokers over Redis with a
// replica. The master is killed while accounts register, and again while players join and leave.
// One broker is killed among the players, another one while rooms end.
func TestKitFaults(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout*time.Duration(1+*faultRooms/500))
	defer cancel()
	logf := timedLog(t)
	k := &kitFaults{T: t, sentinel: redistest.StartSentinel(t), ended: &endedRooms{ids: map[string]bool{}, events: map[string][]endedRoom{}}}
	backend := startBackend(t, k.ended.receive)
	webhooks := []string{"SWITCHBOARD_WEBHOOKS_URL=" + backend, "SWITCHBOARD_WEBHOOKS_SECRETS=" + webhookSecret, "SWITCHBOARD_WEBHOOKS_EVENTS=room_ended"}
	k.deployment = deployWith(t, 3, deployOptions{redis: k.sentinel.URL(), webhooks: webhooks, env: []string{
		"SWITCHBOARD_KIT_ROOMS={modes: {battle: {capacity: 4, grace: 1s, empty_life: 1h}}}",
		"SWITCHBOARD_KIT_ACCOUNTS={durable: true, iterations: 4096, register_rate: 10000, address_rate: 100000, name_rate: 10000}",
		"SWITCHBOARD_AUTH_HS256_SECRET=" + strings.Repeat("token secret ", 3),
		"SWITCHBOARD_LIMITS_MESSAGE_RATE=10000", "SWITCHBOARD_REQUESTS_RATE=10000",
	}})
	killMaster := func() {
		master, err := k.sentinel.Master(ctx)
		if err != nil {
			t.Error(err)
			return
		}
		master.Kill()
		if err := k.sentinel.Rejoin(ctx, master); err != nil {
			t.Error(err)
		}
		logf("the master was killed, and its replica has taken over")
	}
	k.register(ctx, "early", func() {})
	owners := k.register(ctx, "player", killMaster)
	logf("%d accounts are registered", 2*accountCount)

	var ids []string
	for i := range *faultRooms {
		id := fmt.Sprint("arena", i)
		body := fmt.Sprintf(`{"id":%q,"mode":"battle","region":"r%d"}`, id, i%3)
		if status, text := call(ctx, t, k.brokers[0], http.MethodPost, "/v1/rooms", body); status != http.StatusOK {
			t.Fatalf("create: %d %s", status, text)
		}
		ids = append(ids, id)
	}
	k.play(ctx, k.connect(ctx, owners), ids, func() { end(ctx, t, k.brokers[2], syscall.SIGKILL) }, killMaster)
	k.brokers = k.brokers[:2]
	k.awaitAgreement(ctx)
	k.checkRooms(ctx, ids)
	logf("the rooms agree with their lists")
	k.deleteRooms(ctx, ids)
}
