package board

import (
	"errors"
	"os"
	"sync/atomic"
	"testing"

	"switchboard/broker/extension"
	"switchboard/internal/redistest"
	"switchboard/internal/wire"
	"switchboard/kit/index"
	"switchboard/kit/kittest"
)

func TestMain(m *testing.M) { os.Exit(kittest.Main(m)) }

func TestScriptHeaders(t *testing.T) { redistest.CheckScripts(t, kittest.Redis.Client(t), luaFiles) }

// fixture is some brokers with one store.
type fixture struct {
	store   kittest.Store
	index   index.Index
	brokers []*kittest.Broker
	boards  []*Boards // of each broker
	next    atomic.Int32
}

// eachStore runs a test over each store, with three brokers, or one in memory. opts has no Store.
func eachStore(t *testing.T, opts Options, test func(t *testing.T, f *fixture)) {
	kittest.EachStore(t, func(t *testing.T, s kittest.Store) {
		opts, brokers := opts, 1
		if opts.Store = NewMemory(); s.Shared {
			opts.Store, brokers = NewRedis(s.Pipe, s.Prefix), 3
		}
		opts.Index = s.Index("boards")
		f := &fixture{store: s, index: opts.Index}
		for range brokers {
			f.brokers = append(f.brokers, s.Start(t, kittest.With(func(h *extension.Host) (extension.Extension, error) {
				b, err := NewBoards(h, opts)
				if err != nil {
					return extension.Extension{}, err
				}
				f.boards = append(f.boards, b)
				return b.Extension(), nil
			})))
		}
		test(t, f)
	})
}

// any returns the boards of one broker after the other.
func (f *fixture) any() *Boards { return f.boards[int(f.next.Add(1))%len(f.boards)] }

func (f *fixture) submit(t testing.TB, s Score) Result {
	t.Helper()
	r, err := f.any().Submit(t.Context(), s)
	if err != nil {
		t.Fatalf("submit %+v: %v", s, err)
	}
	return r
}

// top returns the field top of a board and its id, "" and 0 if it is absent.
func (f *fixture) top(t testing.TB, board string) (value string, id int64) {
	t.Helper()
	fields, err := f.any().host.ReadState(t.Context(), channelPrefix+board, topField)
	if err != nil {
		t.Fatal(err)
	}
	if field := fields[topField]; field != nil {
		return string(field.Value), field.ID
	}
	return "", 0
}

// wantCode checks the code of an error.
func wantCode(t testing.TB, what string, err error, code wire.ErrorCode) {
	t.Helper()
	if e, ok := errors.AsType[*wire.Error](err); !ok || e.Code != code {
		t.Errorf("%s: %v, want %s", what, err, code)
	}
}
