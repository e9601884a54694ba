package scene_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/broker"
	"switchboard/broker/extension"
	"switchboard/client"
	clientscene "switchboard/client/scene"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/kit/index"
	"switchboard/kit/kittest"
	"switchboard/kit/scene"
)

func TestMain(m *testing.M) {
	if os.Getenv(redisVariable) != "" { // the broker of TestKilledBroker
		fmt.Fprintln(os.Stderr, runBroker())
		os.Exit(1)
	}
	os.Exit(kittest.Main(m))
}

// world is brokers that share avatars and scenes.
type world struct {
	*testing.T
	store   kittest.Store
	opts    scene.Options
	brokers []*kittest.Broker
	scenes  []*scene.Scenes // of the brokers
	hosts   []*extension.Host
}

// eachWorld runs a test over memory, Redis and a Cluster. change may be nil. Rounds run only if the
// test runs them, unless change sets Every.
func eachWorld(t *testing.T, change func(*scene.Options), test func(w *world)) {
	kittest.EachStore(t, func(t *testing.T, s kittest.Store) { test(openWorld(t, s, change)) })
}

func openWorld(t *testing.T, s kittest.Store, change func(*scene.Options)) *world {
	w := &world{T: t, store: s, opts: scene.Options{Every: time.Hour}}
	if w.opts.Avatars, w.opts.Scenes = index.Index(index.NewMemory()), index.Index(index.NewMemory()); s.Shared {
		w.opts.Avatars = index.NewRedis(s.Pipe, s.Prefix, "avatars")
		w.opts.Scenes = index.NewRedis(s.Pipe, s.Prefix, "scenes")
	}
	w.opts.Budget = s.Budgets()
	if change != nil {
		change(&w.opts)
	}
	makeExtension := func(h *extension.Host) (extension.Extension, error) {
		scenes, err := scene.New(h, w.opts)
		if err != nil {
			return extension.Extension{}, err
		}
		w.scenes, w.hosts = append(w.scenes, scenes), append(w.hosts, h)
		return scenes.Extension(), nil
	}
	brokers := 1
	if s.Shared {
		brokers = 3
	}
	for range brokers {
		w.brokers = append(w.brokers, s.Start(t, func(o *broker.Options) { o.Extensions = append(o.Extensions, makeExtension) }))
	}
	return w
}

// at returns the avatars and scenes of one of the brokers.
func (w *world) at(i int) *scene.Scenes { return w.scenes[i%len(w.scenes)] }

// another returns the same avatars and scenes, with a function that is called after each kind of
// step once.
func (w *world) another(after func(step string)) *scene.Scenes {
	w.Helper()
	s, err := scene.New(w.host(), w.opts)
	w.must(err)
	seen := map[string]bool{}
	s.SetFault(func(step string) error {
		if !seen[step] {
			seen[step] = true
			after(step)
		}
		return nil
	})
	return s
}

func (w *world) host() *extension.Host { return w.hosts[0] }

// newScene creates an open scene of the world earth; its id is its name.
func (w *world) newScene(names ...string) {
	w.Helper()
	for i, name := range names {
		_, err := w.at(i).CreateScene(w.Context(), scene.NewScene{ID: name, World: "earth", Name: name})
		w.must(err)
	}
}

func (w *world) newAvatar(id, user string) {
	w.Helper()
	_, err := w.at(1).CreateAvatar(w.Context(), scene.NewAvatar{ID: id, User: user, Name: "N " + id})
	w.must(err)
}

func (w *world) transfer(avatar, to string) {
	w.Helper()
	_, err := w.at(2).Transfer(w.Context(), scene.Transfer{Avatar: avatar, Scene: to})
	w.must(err)
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// wantCode fails unless err has the code.
func (w *world) wantCode(err error, want wire.ErrorCode) {
	w.Helper()
	if e, ok := errors.AsType[*wire.Error](err); !ok || e.Code != want {
		w.Errorf("got %v, want %s", err, want)
	}
}

// listed returns the avatars that a scene shows, with a + if online. It reads at all brokers,
// and they must agree.
func (w *world) listed(id string) string {
	w.Helper()
	var first string
	for i, s := range w.scenes {
		v, err := s.GetScene(w.Context(), id)
		w.must(err)
		var list []string
		for _, p := range v.Avatars {
			list = append(list, p.Avatar+map[bool]string{true: "+"}[p.Online])
		}
		if v.Count != len(v.Avatars) {
			w.Errorf("the count is %d of %v", v.Count, list)
		}
		if text := strings.Join(list, " "); i == 0 {
			first = text
		} else if text != first {
			w.Errorf("%s has %q and %q", id, first, text)
		}
	}
	return first
}

func (w *world) wantListed(id, want string) {
	w.Helper()
	if got := w.listed(id); got != want {
		w.Errorf("%s lists %q, want %q", id, got, want)
	}
}

// places returns the fields pc/ of a scene. A leased one has a ~.
func (w *world) places(id string) (list []string) {
	w.Helper()
	fields, err := w.host().ReadGroup(w.Context(), "scene:"+id, "pc/")
	w.must(err)
	for _, f := range fields {
		list = append(list, strings.TrimPrefix(f.Name, "pc/")+map[bool]string{true: "~"}[f.Lease != 0])
	}
	return list
}

func (w *world) wantPlaces(id string, want ...string) {
	w.Helper()
	if got := w.places(id); !slices.Equal(got, want) {
		w.Errorf("%s has the places %v, want %v", id, got, want)
	}
}

// rounds makes everything due, and runs two rounds at once.
func (w *world) rounds(avatars, scenes []string) {
	w.Helper()
	w.must(w.opts.Avatars.Schedule(w.Context(), 0, avatars...))
	w.must(w.opts.Scenes.Schedule(w.Context(), 0, scenes...))
	done := make(chan error)
	for i := range 2 {
		go func() {
			_, err := w.at(i).Round(w.Context())
			done <- err
		}()
	}
	w.must(errors.Join(<-done, <-done))
}

// stores returns what the checks and the rounds of a janitor read.
func (w *world) stores() scene.CheckOptions {
	return scene.CheckOptions{States: w.store.Queue.(kit.States), Avatars: w.opts.Avatars, Scenes: w.opts.Scenes}
}

// check runs one look of the checks and returns what they find, in order.
func (w *world) check() (found []string) {
	w.Helper()
	for _, c := range scene.Checks(w.stores()) {
		list, err := c.Find(w.Context())
		w.must(err)
		for _, f := range list {
			found = append(found, f.Subject+": "+f.Problem)
		}
	}
	slices.Sort(found)
	return found
}

func (w *world) wantChecked() {
	w.Helper()
	if found := w.check(); len(found) > 0 {
		w.Errorf("the checks find %q", found)
	}
}

// change writes fields of a channel without any rule.
func (w *world) change(channel string, ops ...state.Op) {
	w.Helper()
	_, err := w.host().Change(w.Context(), channel, &state.Update{Ops: ops, Writer: state.BackendHolder}, extension.ChangeOptions{})
	w.must(err)
}

// player is a client that can leave.
type player struct {
	clientscene.Scenes
	leave func()
	log   chan string // changes of scenes: set, away, back and del, with the field
}

// play connects a client of a user.
func (w *world) play(broker int, user, device string) *player {
	w.Helper()
	return w.playAt(w.brokers[broker%len(w.brokers)].TCP, user, device)
}

func (w *world) playAt(address, user, device string) *player {
	w.Helper()
	p := &player{log: make(chan string, 1000)}
	c, err := client.New(client.Options{
		URLs: []string{"tcp://" + address}, User: user, Client: wire.ClientID(user, device),
		OnMessage: func(m client.Message) { p.note(m.Changes) },
	})
	w.must(err)
	p.Client = c
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	p.leave = func() {
		if cancel(); done != nil {
			<-done
			done = nil
		}
	}
	w.Cleanup(p.leave)
	return p
}

func (p *player) note(c *client.Changes) {
	if c == nil {
		return
	}
	for name := range c.Away {
		p.log <- "away " + name
	}
	for _, name := range c.Back {
		p.log <- "back " + name
	}
	for _, name := range c.Deleted {
		p.log <- "del " + name
	}
	for name, value := range c.Set {
		if _, leased := c.Until[name]; !leased {
			p.log <- fmt.Sprintf("set %s %s", name, value)
		}
	}
}

// follow subscribes to a scene with its state.
func (p *player) follow(w *world, id string) {
	w.Helper()
	_, err := p.Subscribe(w.Context(), clientscene.Channel(id), client.SubscribeOptions{State: true})
	w.must(err)
}

// expect waits for a change, and ignores those before it.
func (p *player) expect(w *world, want string) {
	w.Helper()
	var seen []string
	timeout := time.NewTimer(20 * time.Second)
	defer timeout.Stop()
	for {
		select {
		case got := <-p.log:
			if got == want {
				return
			}
			seen = append(seen, got)
		case <-timeout.C:
			w.Fatalf("received %q, not %q", seen, want)
		}
	}
}
