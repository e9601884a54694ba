package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

func number(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) }

// trial is the measurements of one server that was started for it.
type trial struct {
	*run
	contender contender
	meter     *meter
	players   *players
}

// record adds one figure of the contender.
func (t *trial) record(metric string, value float64) {
	t.figures = append(t.figures, figure{t.contender.name, metric, value})
}

// micros returns microseconds per piece.
func micros(d time.Duration, n int64) float64 {
	return float64(d.Nanoseconds()) / 1e3 / float64(max(1, n))
}

// small measures rooms of 4: joins, memory with idle members, and changes.
func (t *trial) small(ctx context.Context) error {
	s := t.size
	if err := t.players.fill(ctx, s.warmRooms, smallRoom); err != nil { // the first work of the server
		return err
	}
	server, store, err := t.meter.memory(ctx)
	if err != nil {
		return err
	}
	if err := t.joins(ctx, s.rooms, smallRoom, "joins 4"); err != nil {
		return err
	}
	fullServer, fullStore, err := t.meter.memory(ctx)
	if err != nil {
		return err
	}
	t.record("memory room 4", float64(fullServer-server)/float64(s.rooms))
	if t.meter.redis != nil {
		t.record("redis memory room 4", float64(fullStore-store)/float64(s.rooms))
	}
	if err := t.idle(ctx, "idle cpu 4"); err != nil {
		return err
	}
	return t.changes(ctx, t.players.rooms[s.warmRooms:][:s.activeRooms], "changes 4")
}

// large measures rooms of 50: joins and changes.
func (t *trial) large(ctx context.Context) error {
	if err := t.joins(ctx, t.size.largeRooms, largeRoom, "joins 50"); err != nil {
		return err
	}
	return t.changes(ctx, t.players.rooms, "changes 50")
}

// empty measures the memory of rooms without members.
func (t *trial) empty(ctx context.Context) error {
	if err := t.players.fill(ctx, 1, smallRoom); err != nil {
		return err
	}
	server, store, err := t.meter.memory(ctx)
	if err != nil {
		return err
	}
	if err := t.meter.game.create(ctx, t.size.emptyRooms); err != nil {
		return err
	}
	fullServer, fullStore, err := t.meter.memory(ctx)
	if err != nil {
		return err
	}
	t.record("memory empty room", float64(fullServer-server)/float64(t.size.emptyRooms))
	if t.meter.redis != nil {
		t.record("redis memory empty room", float64(fullStore-store)/float64(t.size.emptyRooms))
	}
	return nil
}

// joins measures members that connect and join until they know the state of their room.
func (t *trial) joins(ctx context.Context, rooms, capacity int, metric string) error {
	t.show("%s", metric)
	before, err := t.meter.cpu()
	if err != nil {
		return err
	}
	if err := t.players.fill(ctx, rooms, capacity); err != nil {
		return err
	}
	now, err := t.meter.cpu()
	if err != nil {
		return err
	}
	n := int64(rooms * capacity)
	t.record(metric+" per s", float64(n)/now.at.Sub(before.at).Seconds())
	t.record(metric+" cpu", micros(now.since(before).total(), n))
	return nil
}

// idle measures the CPU of rooms in which nothing happens.
func (t *trial) idle(ctx context.Context, metric string) error {
	t.show("%s", metric)
	before, err := t.meter.cpu()
	if err != nil {
		return err
	}
	if err := pause(ctx, t.size.time); err != nil {
		return err
	}
	now, err := t.meter.cpu()
	if err != nil {
		return err
	}
	perSecond := now.since(before).total().Seconds() / now.at.Sub(before.at).Seconds()
	t.record(metric, 1e6*perSecond/float64(len(t.players.rooms)))
	return nil
}

// settle is the time in which the joins of a room have reached all members.
const settle = 300 * time.Millisecond

// warmUp is the part of the time before the measurement begins.
const warmUp = 4

// changes measures a closed loop: each member of the rooms changes its position, and changes it
// again as soon as the change has come back.
func (t *trial) changes(ctx context.Context, rooms []*room, metric string) error {
	t.show("%s", metric)
	if err := pause(ctx, settle); err != nil {
		return err
	}
	for _, r := range rooms {
		r.moving.Store(true)
	}
	for _, r := range rooms {
		for _, m := range r.members {
			if err := m.move(); err != nil {
				return err
			}
		}
	}
	if err := pause(ctx, t.size.time/warmUp); err != nil {
		return err
	}
	_, deliveredBefore, _ := totals(rooms)
	before, err := t.meter.cpu()
	if err != nil {
		return err
	}
	if err := pause(ctx, t.size.time); err != nil {
		return err
	}
	now, err := t.meter.cpu()
	if err != nil {
		return err
	}
	_, delivered, _ := totals(rooms)
	n, elapsed := delivered-deliveredBefore, now.at.Sub(before.at).Seconds()
	spent := now.since(before)
	t.record(metric+" per s", float64(n)/float64(rooms[0].capacity)/elapsed)
	t.record(metric+" cpu", micros(spent.total(), n))
	t.record(metric+" cores", spent.total().Seconds()/elapsed)
	if t.meter.redis != nil {
		t.record(metric+" redis cpu", micros(spent.redis, n))
	}
	return t.verify(ctx, rooms)
}

// drainTimeout limits the time until all changes have arrived.
const drainTimeout = 20 * time.Second

// verify ends the changes and waits until every change has reached every member of its room.
func (t *trial) verify(ctx context.Context, rooms []*room) error {
	for _, r := range rooms {
		r.moving.Store(false)
	}
	for end := time.Now().Add(drainTimeout); ; {
		made, delivered, expected := totals(rooms)
		switch err := t.players.failure(); {
		case err != nil:
			return err
		case made == 0:
			return errors.New("no member has changed anything")
		case delivered == expected:
			return nil
		case time.Now().After(end):
			return fmt.Errorf("%d of %d changes have arrived", delivered, expected)
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}
