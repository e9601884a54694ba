package main

import (
	"fmt"

	"switchboard/broker"
	"switchboard/cmd/internal/setup"
	"switchboard/configs"
	"switchboard/kit/board"
	"switchboard/kit/hold"
	"switchboard/kit/index"
	"switchboard/kit/room"
)

// addKit sets opts.Extensions to the systems of settings.Kit, which keep their data next to the
// data of the broker.
func addKit(settings configs.Broker, opts *broker.Options, s *store) {
	k := settings.Kit
	if k.Rooms != nil {
		o := *k.Rooms
		o.Index = s.index(settings.Prefix, setup.RoomIndex)
		opts.Extensions = append(opts.Extensions, extension(room.New, o))
	}
	if k.Holds != nil {
		opts.Extensions = append(opts.Extensions, extension(hold.New, *k.Holds))
	}
	if k.Boards != nil {
		o := *k.Boards
		if o.Store = board.Store(board.NewMemory()); s.pipe != nil {
			o.Store = board.NewRedis(s.pipe, settings.Prefix)
		}
		opts.Extensions = append(opts.Extensions, extension(board.NewBoards, o))
	}
}

// system is a system of the kit.
type system interface{ Extension() broker.Extension }

// extension returns an element of broker.Options.Extensions.
func extension[S system, O any](create func(*broker.Host, O) (S, error), o O) func(*broker.Host) (broker.Extension, error) {
	return func(host *broker.Host) (broker.Extension, error) {
		s, err := create(host, o)
		if err != nil {
			return broker.Extension{}, fmt.Errorf("kit: %w", err)
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
