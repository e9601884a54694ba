package kit_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/broker"
	"switchboard/broker/extension"
	"switchboard/internal/await"
	"switchboard/janitor/task"
	"switchboard/kit"
	"switchboard/kit/account"
	"switchboard/kit/board"
	"switchboard/kit/hold"
	"switchboard/kit/index"
	"switchboard/kit/kittest"
	"switchboard/kit/room"
	"switchboard/kit/scene"
	"switchboard/queue"
)

// documents are the documents of a kind, as one process has them.
type documents struct {
	create    func(ctx context.Context, name string) (id string, err error)
	change    func(ctx context.Context, id string) error // changes the document, and maybe its card
	round     func(ctx context.Context) error
	extension extension.Extension
}

// kind is a kind of documents, which has the rules of this suite.
type kind struct {
	name   string
	prefix string // of channels
	// always means that each document is always on the due list, also after a failover to an earlier
	// moment of the lists.
	always bool
	open   func(h *extension.Host, s kittest.Store, lists index.Index) (documents, error)
	checks func(s kittest.Store, o kit.CheckOptions) []task.Check
	rounds func(s kittest.Store, o kit.CheckOptions) []task.Round // of a janitor
}

func kinds() []kind {
	return []kind{
		{"rooms", "room:", true, openRooms,
			func(_ kittest.Store, o kit.CheckOptions) []task.Check { return []task.Check{room.Check(o)} },
			func(_ kittest.Store, o kit.CheckOptions) []task.Round { return []task.Round{room.Restore(o)} }},
		{"holds", "hold:", true, openHolds,
			func(_ kittest.Store, o kit.CheckOptions) []task.Check { return []task.Check{hold.Check(o)} },
			func(_ kittest.Store, o kit.CheckOptions) []task.Round { return []task.Round{hold.Restore(o)} }},
		{"boards", "board:", true, openBoards,
			func(s kittest.Store, o kit.CheckOptions) []task.Check {
				return []task.Check{board.Check(boardStores(s, o)), board.CheckList(boardStores(s, o))}
			},
			func(s kittest.Store, o kit.CheckOptions) []task.Round {
				return []task.Round{board.Restore(boardStores(s, o))}
			}},
		{"accounts", "account:", false, openAccounts,
			func(_ kittest.Store, o kit.CheckOptions) []task.Check { return []task.Check{account.Check(o)} },
			func(_ kittest.Store, o kit.CheckOptions) []task.Round { return []task.Round{account.Restore(o)} }},
		{"avatars", "avatar:", false, openAvatars,
			func(_ kittest.Store, o kit.CheckOptions) []task.Check { return scene.Checks(avatarStores(o)) },
			func(_ kittest.Store, o kit.CheckOptions) []task.Round { return scene.Restore(avatarStores(o)) }},
		{"scenes", "scene:", false, openScenes,
			func(_ kittest.Store, o kit.CheckOptions) []task.Check { return scene.Checks(sceneStores(o)) },
			func(_ kittest.Store, o kit.CheckOptions) []task.Round { return scene.Restore(sceneStores(o)) }},
	}
}

func openRooms(h *extension.Host, _ kittest.Store, lists index.Index) (documents, error) {
	r, err := room.New(h, room.Options{Modes: map[string]room.Mode{"duel": {}}, Index: lists})
	if err != nil {
		return documents{}, err
	}
	return documents{
		func(ctx context.Context, name string) (string, error) {
			_, err := r.Create(ctx, room.Backend, room.CreateRequest{ID: name, Mode: "duel"})
			return name, err
		},
		func(ctx context.Context, id string) error {
			_, err := r.Reserve(ctx, id, room.ReserveRequest{Users: []string{"amy"}, TTLMS: time.Minute.Milliseconds()})
			return err
		}, r.Round, r.Extension(),
	}, nil
}

func openHolds(h *extension.Host, _ kittest.Store, lists index.Index) (documents, error) {
	holds, err := hold.New(h, hold.Options{Index: lists})
	if err != nil {
		return documents{}, err
	}
	return documents{
		func(ctx context.Context, name string) (string, error) {
			_, err := holds.Put(ctx, name, hold.PutRequest{Resource: hold.Resource{Capacity: 5}})
			return name, err
		},
		func(ctx context.Context, id string) error {
			_, err := holds.Hold(ctx, id, hold.TakeRequest{Count: 2})
			return err
		}, holds.Round, holds.Extension(),
	}, nil
}

func openBoards(h *extension.Host, s kittest.Store, lists index.Index) (documents, error) {
	b, err := board.NewBoards(h, board.Options{
		Boards: map[string]board.Board{"*": {}}, Store: board.NewRedis(s.Pipe, s.Prefix), Index: lists,
	})
	if err != nil {
		return documents{}, err
	}
	submit := func(ctx context.Context, id, player string) error {
		_, err := b.Submit(ctx, board.Score{Board: id, Player: player, Score: 7})
		return err
	}
	return documents{
		func(ctx context.Context, name string) (string, error) { return name, submit(ctx, name, "amy") },
		func(ctx context.Context, id string) error { return submit(ctx, id, "bob") },
		b.Round, b.Extension(),
	}, nil
}

// boardStores returns what the checks and the rounds of boards read.
func boardStores(s kittest.Store, o kit.CheckOptions) board.CheckOptions {
	return board.CheckOptions{Store: board.NewRedis(s.Pipe, s.Prefix), States: o.States, Index: o.Index}
}

func openAccounts(h *extension.Host, _ kittest.Store, lists index.Index) (documents, error) {
	a, err := account.New(h, account.Options{
		SigningKey: []byte("the signing key of the tests has 40 bytes"), Iterations: 4096, RegisterRate: 1000, AddressRate: 1000, Index: lists,
	})
	if err != nil {
		return documents{}, err
	}
	return documents{
		func(ctx context.Context, name string) (string, error) {
			s, err := a.Register(ctx, account.Registration{Name: name, Password: "a long password"}, account.Caller{})
			return s.Account.ID, err
		},
		func(ctx context.Context, id string) error {
			_, err := a.Lock(ctx, id)
			return err
		}, a.Round, a.Extension(),
	}, nil
}

func openAvatars(h *extension.Host, _ kittest.Store, lists index.Index) (documents, error) {
	d, s, err := newScenes(h, lists, index.NewMemory())
	d.create = func(ctx context.Context, name string) (string, error) {
		_, err := s.CreateAvatar(ctx, scene.NewAvatar{ID: name, User: "amy", Name: name})
		return name, err
	}
	d.change = func(ctx context.Context, id string) error {
		_, err := s.DeleteAvatar(ctx, id, nil, nil)
		return err
	}
	return d, err
}

func openScenes(h *extension.Host, _ kittest.Store, lists index.Index) (documents, error) {
	d, s, err := newScenes(h, index.NewMemory(), lists)
	d.create = func(ctx context.Context, name string) (string, error) {
		_, err := s.CreateScene(ctx, scene.NewScene{ID: name, World: "earth", Name: name})
		return name, err
	}
	d.change = func(ctx context.Context, id string) error {
		name := "new name of " + id
		_, err := s.PatchScene(ctx, id, scene.ScenePatch{Name: &name})
		return err
	}
	return d, err
}

func newScenes(h *extension.Host, avatars, scenes index.Index) (d documents, s *scene.Scenes, err error) {
	if s, err = scene.New(h, scene.Options{Avatars: avatars, Scenes: scenes}); err != nil {
		return d, nil, err
	}
	d.extension = s.Extension()
	d.round = func(ctx context.Context) error {
		_, err := s.Round(ctx)
		return err
	}
	return d, s, nil
}

func avatarStores(o kit.CheckOptions) scene.CheckOptions {
	return scene.CheckOptions{States: o.States, Avatars: o.Index, Scenes: index.NewMemory()}
}

func sceneStores(o kit.CheckOptions) scene.CheckOptions {
	return scene.CheckOptions{States: o.States, Avatars: index.NewMemory(), Scenes: o.Index}
}

var errStopped = errors.New("the process has stopped")

// process is a process that stops after some writes.
type process struct {
	stops bool // it stops after left writes
	left  int
	ended bool
}

// write makes a write, unless the process has stopped.
func (p *process) write(write func() error) error {
	if p.stops && p.left == 0 {
		p.ended = true
		return errStopped
	}
	err := write()
	if p.stops {
		if p.left--; p.left == 0 && err == nil {
			p.ended = true
			return errStopped
		}
	}
	return err
}

// stoppingQueue is the queue of a process.
type stoppingQueue struct {
	broker.Queue
	*process
}

// AppendChannel implements broker.Queue.
func (q stoppingQueue) AppendChannel(ctx context.Context, p queue.ChannelPush) (a queue.Appended, err error) {
	if p.Update == nil {
		return q.Queue.AppendChannel(ctx, p)
	}
	err = q.write(func() (err error) {
		a, err = q.Queue.AppendChannel(ctx, p)
		return err
	})
	return a, err
}

// stoppingIndex is an index of a process.
type stoppingIndex struct {
	index.Index
	*process
}

// Put implements index.Index.
func (i stoppingIndex) Put(ctx context.Context, cards ...index.Card) error {
	return i.write(func() error { return i.Index.Put(ctx, cards...) })
}

// Schedule implements index.Index.
func (i stoppingIndex) Schedule(ctx context.Context, in time.Duration, ids ...string) error {
	return i.write(func() error { return i.Index.Schedule(ctx, in, ids...) })
}

// losableIndex is an index whose store can lose it.
type losableIndex struct {
	index.Index
	fresh func() index.Index
	due   map[string]bool // the ids that were scheduled since the last loss
}

// Schedule implements index.Index.
func (i *losableIndex) Schedule(ctx context.Context, in time.Duration, ids ...string) error {
	for _, id := range ids {
		i.due[id] = true
	}
	return i.Index.Schedule(ctx, in, ids...)
}

// suite is the documents of a kind in a store, of a process that may stop and of another one.
type suite struct {
	*testing.T
	kind
	store           kittest.Store
	process         *process
	lists           *losableIndex
	stopping, other documents
	ids             []string
}

// eachKind runs a test for each kind of documents over memory, Redis and a Cluster. Boards are only
// checked in Redis.
func eachKind(t *testing.T, test func(*suite)) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			kittest.EachStore(t, func(t *testing.T, s kittest.Store) {
				if s.Shared || k.name != "boards" {
					test(open(t, k, s))
				}
			})
		})
	}
}

func open(t *testing.T, k kind, s kittest.Store) *suite {
	d := &suite{T: t, kind: k, store: s, process: new(process)}
	generation := 0
	d.lists = &losableIndex{due: map[string]bool{}, fresh: func() index.Index {
		generation++
		return s.Index(fmt.Sprint(k.name, generation))
	}}
	d.lists.Index = d.lists.fresh()
	in := s
	in.Queue = stoppingQueue{s.Queue, d.process}
	in.Start(t, kittest.With(func(h *extension.Host) (_ extension.Extension, err error) {
		if d.stopping, err = k.open(h, s, stoppingIndex{d.lists, d.process}); err != nil {
			return extension.Extension{}, err
		}
		if d.other, err = k.open(h, s, d.lists); err != nil {
			return extension.Extension{}, err
		}
		e := d.other.extension
		e.Run = nil // the test makes the rounds
		return e, nil
	}))
	return d
}

func (d *suite) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

// create makes documents, with their cards.
func (d *suite) create(names ...string) {
	d.Helper()
	for _, name := range names {
		id, err := d.other.create(d.Context(), name)
		d.must(err)
		d.ids = append(d.ids, id)
	}
	d.settle()
}

// options returns what checks and rounds of a janitor read.
func (d *suite) options() kit.CheckOptions {
	return kit.CheckOptions{Index: d.lists, States: d.store.Queue.(kit.States)}
}

// find returns the channels of the kind in which the checks find something.
func (d *suite) find() []string {
	d.Helper()
	found := map[string]bool{}
	for _, c := range d.checks(d.store, d.options()) {
		list, err := c.Find(d.Context())
		d.must(err)
		for _, f := range list {
			if strings.HasPrefix(f.Subject, d.prefix) {
				found[f.Subject] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// settle makes the documents due that are on the due list, and rounds until the checks find
// nothing.
func (d *suite) settle() {
	d.Helper()
	await.True(d, "the checks find nothing", func() bool {
		due := slices.Collect(maps.Keys(d.lists.due))
		if d.always {
			due = append(due, d.ids...)
		}
		d.must(d.lists.Index.Schedule(d.Context(), 0, due...))
		d.must(d.other.round(d.Context()))
		return len(d.find()) == 0
	})
}

// restore makes the rounds of a janitor, and returns how many documents they have noted.
func (d *suite) restore() (restored int) {
	d.Helper()
	rounds := d.rounds(d.store, d.options())
	for range 2 { // the first one only counts the documents whose versions the second one compares
		for _, r := range rounds {
			n, err := r.Do(d.Context())
			d.must(err)
			restored += n
		}
	}
	return restored
}

// lose makes the store lose the lists, but for the cards of some documents.
func (d *suite) lose(but ...string) {
	d.Helper()
	cards, err := d.lists.Get(d.Context(), but...)
	d.must(err)
	d.lists.Index = d.lists.fresh()
	clear(d.lists.due)
	if len(cards) > 0 {
		d.must(d.lists.Put(d.Context(), cards...))
	}
}

// channels returns the channels of documents, in order.
func (d *suite) channels(ids ...string) (list []string) {
	for _, id := range ids {
		list = append(list, d.prefix+id)
	}
	slices.Sort(list)
	return list
}

// TestLostCard: a check finds documents whose card is lost, the round of a janitor notes them, and
// the round of a broker computes the cards again.
func TestLostCard(t *testing.T) {
	eachKind(t, func(d *suite) {
		d.create("a", "b", "c")
		for _, kept := range []int{1, 0} {
			lost := d.ids[kept:]
			d.lose(d.ids[:kept]...)
			if found, want := d.find(), d.channels(lost...); !slices.Equal(found, want) {
				t.Errorf("the checks find %q, want %q", found, want)
			}
			always := d.always
			d.always = false // the documents whose card is lost are not due either
			if n := d.restore(); n < len(lost) {
				t.Errorf("the rounds note %d of %d documents", n, len(lost))
			}
			d.settle()
			d.always = always
			if n := d.restore(); n != 0 {
				t.Errorf("the rounds note %d documents, though nothing is lost", n)
			}
		}
	})
}

// TestLostDueList: a process stops after a change, and the store loses that the document is due. It
// has an older card then.
func TestLostDueList(t *testing.T) {
	eachKind(t, func(d *suite) {
		d.create("a", "b")
		for writes := 1; ; writes++ {
			*d.process = process{stops: true, left: writes}
			err := d.stopping.change(d.Context(), d.ids[0])
			ended := d.process.ended
			*d.process = process{}
			d.lose(d.ids...)
			d.restore()
			d.settle()
			if !ended {
				d.must(err)
				return
			}
		}
	})
}

// TestStoppedProcess stops a process after each write of an operation. Another one finishes what
// must be finished, from the due list.
func TestStoppedProcess(t *testing.T) {
	eachKind(t, func(d *suite) {
		for _, operation := range []string{"create", "change"} {
			for writes, ended := 0, true; ended; writes++ {
				name := fmt.Sprint(operation, writes)
				if operation == "change" {
					d.create(name)
				} else {
					d.ids = append(d.ids, name)
				}
				*d.process = process{stops: true, left: writes}
				var err error
				if operation == "change" {
					err = d.stopping.change(d.Context(), d.ids[len(d.ids)-1])
				} else {
					_, err = d.stopping.create(d.Context(), name)
				}
				ended = d.process.ended
				*d.process = process{}
				if !ended {
					d.must(err)
				}
				d.settle()
			}
		}
	})
}
