package account

import (
	"cmp"
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"runtime"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/tidwall/btree"
	"github.com/xdg-go/scram"

	"switchboard/internal/wire"
)

// credentials verify a password and a SCRAM proof. They are the value of $$scram.
type credentials struct {
	Salt       []byte `json:"salt"`
	Iterations int    `json:"iterations"`
	StoredKey  []byte `json:"stored_key"`
	ServerKey  []byte `json:"server_key"`
}

const saltSize = 16 // bytes

// stored returns the credentials as the library takes them.
func (c *credentials) stored() scram.StoredCredentials {
	return scram.StoredCredentials{
		KeyFactors: scram.KeyFactors{Salt: string(c.Salt), Iters: c.Iterations}, StoredKey: c.StoredKey, ServerKey: c.ServerKey,
	}
}

// passwords computes and verifies credentials. A computation takes some 10 ms of a processor, so
// each one waits for its turn.
type passwords struct {
	iterations, shortest int
	formerIterations     int // of older passwords; 0 for none
	turns                *turns
	dummyKey             []byte // derives the salts and iterations of unknown names
}

func newPasswords(o Options) passwords {
	return passwords{
		iterations: o.Iterations, shortest: o.MinPassword, formerIterations: o.FormerIterations,
		turns: newTurns(), dummyKey: subkey(o.SigningKey, "dummy salts"),
	}
}

// subkey derives a key for one purpose from the signing key.
func subkey(key []byte, purpose string) []byte {
	k, err := hkdf.Key(sha256.New, key, nil, "switchboard accounts: "+purpose, sha256.Size)
	if err != nil {
		panic(err) // only for keys that are too long
	}
	return k
}

// checkNew returns an error if a text cannot be a new password.
func (p *passwords) checkNew(password string) error {
	if len(password) < p.shortest || len(password) > MaxPassword || !utf8.ValidString(password) {
		return wire.Errorf(wire.BadRequest, "password: it must have %d to %d bytes of UTF-8", p.shortest, MaxPassword)
	}
	return nil
}

// create returns credentials for a new password. For queues see turns.take.
func (p *passwords) create(ctx context.Context, password string, queues ...string) (*credentials, error) {
	if err := p.checkNew(password); err != nil {
		return nil, err
	}
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt) // never fails
	c, err := p.derive(ctx, password, salt, p.iterations, queues)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return nil, wire.Errorf(wire.BadRequest, "password: it has a character that passwords cannot have (RFC 4013)")
	}
	return c, nil
}

// verify reports whether the password belongs to the credentials. For queues see turns.take.
func (p *passwords) verify(ctx context.Context, password string, c *credentials, queues ...string) (bool, error) {
	if len(password) > MaxPassword {
		return false, nil
	}
	got, err := p.derive(ctx, password, c.Salt, c.Iterations, queues)
	return err == nil && got != nil && subtle.ConstantTimeCompare(got.StoredKey, c.StoredKey) == 1, err
}

// derive computes credentials, or nil for a password that SASLprep (RFC 4013) refuses.
func (p *passwords) derive(ctx context.Context, password string, salt []byte, iterations int, queues []string) (*credentials, error) {
	done, err := p.turns.take(ctx, queues...)
	if err != nil {
		return nil, err
	}
	defer done()
	client, err := scram.SHA256.NewClient("", password, "")
	if err != nil {
		return nil, nil //nolint:nilerr // the caller must not learn the text, which may quote the password
	}
	s, err := client.GetStoredCredentialsWithError(scram.KeyFactors{Salt: string(salt), Iters: iterations})
	if err != nil {
		return nil, err
	}
	return &credentials{Salt: salt, Iterations: iterations, StoredKey: s.StoredKey, ServerKey: s.ServerKey}, nil
}

// dummy returns the credentials that stand for those of an unknown name. Salt and iterations are
// the same each time, as those of an account are. Half of the names have the former iterations, as
// some accounts do. No password fits.
func (p *passwords) dummy(n name) *credentials {
	mac := hmac.New(sha256.New, p.dummyKey)
	mac.Write([]byte(n.digest))
	sum := mac.Sum(nil)
	c := &credentials{
		Salt: sum[:saltSize:saltSize], Iterations: p.iterations,
		StoredKey: make([]byte, sha256.Size), ServerKey: make([]byte, sha256.Size),
	}
	if p.formerIterations != 0 && sum[saltSize]&1 == 1 {
		c.Iterations = p.formerIterations
	}
	_, _ = rand.Read(c.StoredKey)
	_, _ = rand.Read(c.ServerKey)
	return c
}

// turns decides when each password is computed. Only so many are computed at once that the broker
// keeps half of the processors. Callers that wait get their turns by start-time fair queueing
// (Goyal, Vin, Cheng, 1996): each account and each address has its own queue, and the queues take
// turns. So many attempts of one account, or of one address, delay the logins of others by one
// computation.
type turns struct {
	processors func() int // how many the process may use

	mu      sync.Mutex // guards the fields below
	running int
	clock   int64                // the start of the turn that began last, in turns
	arrived int64                // how many callers have come
	last    map[string]int64     // the start of the last turn of a queue, if it is after clock
	waiting *btree.BTreeG[*turn] // in the order of their turns
}

// turn is a caller that waits.
type turn struct {
	start int64
	order int64         // of its arrival
	ready chan struct{} // closed when the turn begins
}

func newTurns() *turns {
	return &turns{
		processors: func() int { return runtime.GOMAXPROCS(0) }, last: map[string]int64{},
		waiting: btree.NewBTreeG(func(a, b *turn) bool {
			return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.order, b.order)) < 0
		}),
	}
}

// take waits for a turn. queues are the queues of the caller; "" is ignored. The caller calls done
// when the computation has ended.
func (t *turns) take(ctx context.Context, queues ...string) (done func(), err error) {
	w := t.enter(queues)
	select {
	case <-w.ready:
	case <-ctx.Done():
		if !t.withdraw(w) {
			t.end() // the turn had begun
		}
		return nil, ctx.Err()
	}
	began := time.Now()
	return func() {
		if t.processors() > 1 {
			t.end()
			return
		}
		// The only processor is free for as long as the computation took.
		time.AfterFunc(time.Since(began), t.end)
	}, nil
}

// enter adds a caller to its queues, and begins the turns that can begin.
func (t *turns) enter(queues []string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.arrived++
	w := &turn{start: t.clock, order: t.arrived, ready: make(chan struct{})}
	for _, q := range queues {
		if last, waits := t.last[q]; waits && q != "" {
			w.start = max(w.start, last+1)
		}
	}
	t.forgetSomeLocked()
	for _, q := range queues {
		if q != "" {
			t.last[q] = w.start
		}
	}
	t.waiting.Set(w)
	t.beginLocked()
	return w
}

// forgetSomeLocked looks at a few queues, and forgets those whose last turn has begun.
func (t *turns) forgetSomeLocked() {
	looked := 0
	for q, last := range t.last {
		if looked++; looked > 4 {
			return
		}
		if last < t.clock {
			delete(t.last, q)
		}
	}
}

// beginLocked begins the turns for which there are processors.
func (t *turns) beginLocked() {
	for t.waiting.Len() > 0 && t.running < max(1, t.processors()/2) {
		w, _ := t.waiting.PopMin()
		t.clock = max(t.clock, w.start)
		t.running++
		close(w.ready)
	}
	if t.running == 0 {
		clear(t.last)
	}
}

// end ends a turn.
func (t *turns) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running--
	t.beginLocked()
}

// withdraw removes a caller that no longer waits. It returns false if its turn has begun.
func (t *turns) withdraw(w *turn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, waited := t.waiting.Delete(w)
	return waited
}
