package serve

import (
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"switchboard/broker"
	"switchboard/broker/extension"
	"switchboard/cmd/internal/setup"
	"switchboard/configs"
	"switchboard/internal/leader"
	"switchboard/kit/account"
	"switchboard/kit/board"
	"switchboard/kit/budget"
	"switchboard/kit/hold"
	"switchboard/kit/index"
	"switchboard/kit/room"
	"switchboard/kit/scene"
)

// addKit sets opts.Extensions to the systems of settings.Kit, which keep their data next to the
// data of the broker. It may add to what the store runs and closes.
func addKit(settings configs.Broker, opts *broker.Options, s *store) error {
	k := settings.Kit
	budgets, rounds := s.budgets(settings.Prefix), s.rounds(settings.Prefix, opts.Logger)
	if k.Rooms != nil {
		o := *k.Rooms
		o.Index, o.Budget, o.Rounds = s.index(settings.Prefix, setup.RoomIndex), budgets, rounds.Add(setup.RoomIndex)
		if s.events != nil {
			o.Events = s.events
		}
		opts.Extensions = append(opts.Extensions, makeExtension(room.New, o))
	}
	if k.Holds != nil {
		o := *k.Holds
		o.Index, o.Rounds = s.index(settings.Prefix, setup.HoldIndex), rounds.Add(setup.HoldIndex)
		opts.Extensions = append(opts.Extensions, makeExtension(hold.New, o))
	}
	if k.Boards != nil {
		o := *k.Boards
		if o.Store = board.Store(board.NewMemory()); s.pipe != nil {
			o.Store = board.NewRedis(s.pipe, settings.Prefix)
		}
		o.Index, o.Budget, o.Rounds = s.index(settings.Prefix, setup.BoardIndex), budgets, rounds.Add(setup.BoardIndex)
		opts.Extensions = append(opts.Extensions, makeExtension(board.NewBoards, o))
	}
	if k.Accounts != nil {
		o, err := openAccounts(settings, opts, s, rounds)
		if err != nil {
			return err
		}
		opts.Extensions = append(opts.Extensions, makeExtension(account.New, o))
	}
	if k.Sessions != nil {
		opts.Extensions = append(opts.Extensions, makeExtension(account.NewSessions, *k.Sessions))
	}
	if k.Scenes != nil {
		o := *k.Scenes
		o.Avatars, o.Scenes = s.index(settings.Prefix, setup.AvatarIndex), s.index(settings.Prefix, setup.SceneIndex)
		o.Budget, o.Rounds = budgets, rounds.Add(setup.SceneIndex)
		opts.Extensions = append(opts.Extensions, makeExtension(scene.New, o))
	}
	if rounds != nil {
		s.add(rounds.Run, func() {})
	}
	return nil
}

// system is a system of the kit.
type system interface{ Extension() extension.Extension }

// extension returns an element of broker.Options.Extensions.
func makeExtension[S system, O any](create func(*extension.Host, O) (S, error), o O) func(*extension.Host) (extension.Extension, error) {
	return func(host *extension.Host) (extension.Extension, error) {
		s, err := create(host, o)
		if err != nil {
			return extension.Extension{}, fmt.Errorf("kit: %w", err)
		}
		return s.Extension(), nil
	}
}

// index returns the index with a name in the store.
func (s *store) index(prefix, name string) index.Index {
	if s.pipe == nil {
		return index.NewMemory()
	}
	return index.NewRedis(s.pipe, prefix, name)
}

// rounds returns the leases of the rounds of the kit. A store in memory needs none.
func (s *store) rounds(prefix string, log zerolog.Logger) *leader.Leases {
	if s.pipe == nil {
		return nil
	}
	return leader.New(s.pipe, prefix+"ix_r_", log)
}

// budgets returns the budgets of users in the store.
func (s *store) budgets(prefix string) budget.Store {
	if s.pipe == nil {
		return budget.NewMemory()
	}
	return budget.NewRedis(s.pipe, prefix)
}

// openAccounts returns the options of accounts. It opens their Redis if they have one of their own.
// An open broker in memory makes a signing key: its accounts end with the process, as the key does.
func openAccounts(settings configs.Broker, opts *broker.Options, s *store, rounds *leader.Leases) (account.Options, error) {
	o, err := settings.AccountOptions()
	if err != nil {
		return o, err
	}
	own := settings.Kit.Accounts.Redis != ""
	if len(o.SigningKey) == 0 {
		if own || s.pipe != nil || !opts.Access.Tokens.Open() {
			return o, errors.New("kit.accounts.signing_key: it is missing, and there is no auth.hs256_secret")
		}
		o.SigningKey = []byte(rand.Text() + rand.Text())
	}
	o.Index = s.index(settings.Prefix, setup.AccountIndex)
	if !own {
		o.Rounds = rounds.Add(setup.AccountIndex)
	} else {
		// These metrics would have the same names as those of the broker's Redis.
		metrics := prometheus.NewRegistry()
		redis, err := setup.OpenRedis(string(settings.Kit.Accounts.Redis), settings.RedisTLS, metrics, opts.Logger)
		if err != nil {
			return o, fmt.Errorf("kit.accounts.redis: %w", err)
		}
		s.add(redis.AwaitCheck, func() { _ = redis.Close() })
		leases := leader.New(redis.Pipe, settings.Prefix+"ix_r_", opts.Logger)
		o.Rounds = leases.Add(setup.AccountIndex)
		s.add(leases.Run, func() {})
		o.Store = account.RedisStore(redis.Pipe, settings.Prefix)
		o.Index = index.NewRedis(redis.Pipe, settings.Prefix, setup.AccountIndex)
	}
	return o, nil
}
