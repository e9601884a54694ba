package leader

import (
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"switchboard/internal/redispipe"
)

const (
	lookEvery  = 2 * time.Second  // mean interval of Leases.Look
	length     = 5 * time.Second  // of a lease
	blindAfter = 15 * time.Second // without an answer of Redis, each process makes rounds
	endTimeout = 2 * time.Second  // bounds the call of a process that ends
)

//go:embed lua/*.lua
var luaFiles embed.FS

var (
	holdScript = redispipe.MustScript(luaFiles, "hold")
	freeScript = redispipe.MustScript(luaFiles, "free")
)

// Leases are the leases that a process takes, of all kinds of its rounds.
type Leases struct {
	pipe       *redispipe.Pipe
	prefix, id string
	log        zerolog.Logger
	now        func() time.Time // in tests
	wake       chan struct{}    // one slot: Run looks at once

	mu       sync.Mutex // guards the fields below, and those of the leases
	leases   []*Lease
	answered time.Time // when Redis answered last, or the time of New
}

// New returns the leases of a process. prefix begins their keys, such as ix_r_.
func New(pipe *redispipe.Pipe, prefix string, log zerolog.Logger) *Leases {
	return &Leases{
		pipe: pipe, prefix: prefix + "{rounds}:", id: rand.Text(), log: log, now: time.Now,
		wake: make(chan struct{}, 1), answered: time.Now(),
	}
}

// Add adds the lease of a kind of rounds. All leases must be added before Run. Without Leases there
// is no lease: the process makes all rounds.
func (l *Leases) Add(name string) *Lease {
	if l == nil {
		return nil
	}
	lease := &Lease{all: l, key: l.prefix + name}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leases = append(l.leases, lease)
	return lease
}

// Run takes and renews leases until ctx ends. Then it gives them back.
func (l *Leases) Run(ctx context.Context) error {
	for {
		if err := l.Look(ctx); err != nil && ctx.Err() == nil {
			l.log.Warn().Err(err).Msg("the leases of rounds are not known")
		}
		select {
		case <-ctx.Done():
			end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
			defer cancel()
			if err := l.End(end); err != nil {
				l.log.Warn().Err(err).Msg("the leases of rounds end by themselves")
			}
			return nil
		case <-l.wake:
		case <-time.After(lookEvery - lookEvery/10 + mathrand.N(lookEvery/5)):
		}
	}
}

// Look renews the leases of this process, gives back those whose rounds fail, and takes those that
// are free.
func (l *Leases) Look(ctx context.Context) error {
	sent := l.now()
	held, others, back := l.sorted(sent)
	err := errors.Join(l.free(ctx, back), l.read(ctx, others))
	for _, lease := range others {
		if lease.isFree() {
			held = append(held, lease)
		}
	}
	if err = errors.Join(err, l.hold(ctx, held, sent)); err != nil {
		return fmt.Errorf("leases of rounds: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answered = sent
	return nil
}

// End gives all leases back.
func (l *Leases) End(ctx context.Context) error {
	l.mu.Lock()
	var held []*Lease
	for _, lease := range l.leases {
		if !lease.until.IsZero() {
			held = append(held, lease)
		}
		lease.until = time.Time{}
	}
	l.mu.Unlock()
	return l.free(ctx, held)
}

// sorted returns the leases that this process has, the others, and those of the others that it
// gives back.
func (l *Leases) sorted(now time.Time) (held, others, back []*Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, lease := range l.leases {
		switch {
		case lease.givesBack:
			lease.givesBack = false
			back, others = append(back, lease), append(others, lease)
		case now.Before(lease.until):
			held = append(held, lease)
		default:
			others = append(others, lease)
		}
	}
	return held, others, back
}

// read notes which leases are free, and whose leader asks for help.
func (l *Leases) read(ctx context.Context, leases []*Lease) error {
	if len(leases) == 0 {
		return nil
	}
	words := []any{"mget"}
	for _, lease := range leases {
		words = append(words, lease.key)
	}
	cmd := redis.NewSliceCmd(ctx, words...)
	if err := l.pipe.Do(ctx, cmd); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, value := range cmd.Val() {
		text, _ := value.(string)
		leases[i].free, leases[i].help = text == "", strings.HasSuffix(text, " help")
	}
	return nil
}

// hold takes or renews leases. They begin when the call was sent, so that this process never has
// one for longer than Redis.
func (l *Leases) hold(ctx context.Context, leases []*Lease, sent time.Time) error {
	if len(leases) == 0 {
		return nil
	}
	args := []any{l.id, length.Milliseconds()}
	for _, lease := range leases {
		args = append(args, lease.asks())
	}
	reply, err := l.pipe.Eval(ctx, holdScript, keys(leases), args...)
	if err != nil {
		return err
	}
	answers, _ := reply.([]any)
	if len(answers) != len(leases) {
		return fmt.Errorf("unexpected reply of hold: %v", reply)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, lease := range leases {
		if lease.until = (time.Time{}); answers[i] == int64(1) && !lease.givesBack {
			lease.until = sent.Add(length)
		}
	}
	return nil
}

// free ends leases of this process.
func (l *Leases) free(ctx context.Context, leases []*Lease) error {
	if len(leases) == 0 {
		return nil
	}
	_, err := l.pipe.Eval(ctx, freeScript, keys(leases), l.id)
	return err
}

func keys(leases []*Lease) (list []string) {
	for _, lease := range leases {
		list = append(list, lease.key)
	}
	return list
}
