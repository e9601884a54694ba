package scene_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"switchboard/broker"
	"switchboard/broker/extension"
	"switchboard/internal/await"
	"switchboard/internal/redisurl"
	"switchboard/internal/testbed"
	"switchboard/janitor"
	"switchboard/kit/index"
	"switchboard/kit/kittest"
	"switchboard/kit/scene"
)

// The environment of the process that TestKilledBroker kills: the address and the prefix of its
// Redis, and the step of a transfer at which it kills itself.
const (
	redisVariable  = "SCENE_TEST_REDIS"
	prefixVariable = "SCENE_TEST_PREFIX"
	stepVariable   = "SCENE_TEST_STEP"
)

// runBroker runs a broker until it is killed. It prints its TCP address.
func runBroker() error {
	rdb, _, err := redisurl.Open(os.Getenv(redisVariable))
	if err != nil {
		return err
	}
	store := kittest.OpenRedis(rdb, os.Getenv(prefixVariable))
	opts := scene.Options{
		Avatars: index.NewRedis(store.Pipe, store.Prefix, "avatars"), Scenes: index.NewRedis(store.Pipe, store.Prefix, "scenes"),
		Every: time.Hour,
	}
	b, err := broker.New(broker.Options{
		Name:   "killed",
		Listen: broker.ListenOptions{HTTP: "127.0.0.1:0", TCP: "127.0.0.1:0"},
		Store:  store.StoreOptions,
		Extensions: []func(*extension.Host) (extension.Extension, error){func(h *extension.Host) (extension.Extension, error) {
			s, err := scene.New(h, opts)
			if err != nil {
				return extension.Extension{}, err
			}
			transfers := 0
			s.SetFault(func(step string) error {
				if step == os.Getenv(stepVariable) {
					if transfers++; transfers == 2 { // the first one enters
						return syscall.Kill(os.Getpid(), syscall.SIGKILL)
					}
				}
				return nil
			})
			return s.Extension(), nil
		}},
	})
	if err != nil {
		return err
	}
	ctx := context.Background()
	go func() {
		if addrs, err := b.Addrs(ctx); err == nil {
			fmt.Println(addrs.TCP)
		}
	}()
	return b.Run(ctx)
}

// TestKilledBroker kills a broker while it transfers the avatar of one of its clients. The janitor
// makes the avatar away, the round of another broker finishes the transfer, and the player comes
// back there.
func TestKilledBroker(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) (kittest.Store, string){
		"redis": func(t *testing.T) (kittest.Store, string) {
			return kittest.NewRedis(kittest.Redis.Client(t)), kittest.Redis.URL()
		},
		"cluster": func(t *testing.T) (kittest.Store, string) {
			return kittest.NewRedis(kittest.Cluster.Client(t)), kittest.Cluster.URL()
		},
	} {
		for _, step := range []string{"move", "confirm"} {
			t.Run(name+" "+step, func(t *testing.T) {
				s, url := open(t)
				testKilledBroker(openWorld(t, s, nil), url, step)
			})
		}
	}
}

func testKilledBroker(w *world, url, step string) {
	w.newScene("town", "wood")
	w.newAvatar("a1", "amy")
	address := make(chan string, 1)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), redisVariable+"="+url, prefixVariable+"="+w.store.Prefix, stepVariable+"="+step)
	p, err := testbed.Start("broker", cmd, func(line []byte) { address <- string(line) })
	w.must(err)
	w.Cleanup(p.Kill)

	bob := w.play(1, "bob", "phone")
	bob.follow(w, "wood")
	var amy *player
	select {
	case tcp := <-address:
		amy = w.playAt(tcp, "amy", "phone")
	case <-time.After(20 * time.Second):
		w.Fatal("the broker does not start: " + p.Tail(20))
	}
	_, err = amy.Enter(w.Context(), "a1", "town")
	w.must(err)
	w.wantListed("town", "a1+")
	if _, err = amy.Transfer(w.Context(), "a1", "wood"); err == nil {
		w.Fatal("the killed broker answers")
	}
	amy.leave()
	w.runJanitor()
	w.rounds([]string{"a1"}, nil)
	w.wantPlaces("town")
	w.wantPlaces("wood", "a1")
	await.True(w, "the avatar is away", func() bool {
		v, err := w.at(0).GetScene(w.Context(), "wood")
		return err == nil && v.Online == 0
	})
	w.wantListed("wood", "a1")
	w.wantListed("town", "")

	amy = w.play(0, "amy", "phone")
	_, err = amy.Enter(w.Context(), "a1", "wood")
	w.must(err)
	bob.expect(w, "back pc/a1")
	w.wantListed("wood", "a1+")
	w.wantChecked()
}

// runJanitor runs a janitor until the test ends.
func (w *world) runJanitor() {
	w.Helper()
	j, err := janitor.New(janitor.Options{
		Registry: w.store.Registry.(janitor.Registry), Queue: w.store.Queue.(janitor.Queue), ServersEvery: 100 * time.Millisecond,
	})
	w.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- j.Run(ctx) }()
	w.Cleanup(func() {
		cancel()
		<-done
	})
}
