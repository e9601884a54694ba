package scene

import (
	"context"
	"fmt"
	"maps"

	"switchboard/janitor/task"
	"switchboard/kit"
	"switchboard/kit/index"
)

// cards finds avatars and scenes whose card is not that of the record, and cards of scenes without
// a record. It reads the records by their channels: a lost card is in no list.
func (c checker) cards(ctx context.Context) (found []task.Finding, err error) {
	compare := func(lists index.Index, channel func(id string) string, records func(context.Context, []string) ([]index.Card, error)) kit.Visit {
		return func(ctx context.Context, ids []string) error {
			wanted, err := records(ctx, ids)
			if err != nil {
				return err
			}
			cards, err := lists.Get(ctx, ids...)
			if err != nil {
				return err
			}
			for i, want := range wanted {
				if problem := differs(cards[i], want); problem != "" {
					found = append(found, task.Finding{
						Subject: channel(ids[i]), Problem: problem,
						Remedy: "brokers correct it some minutes after a failover; if it stays, any change of the record writes the card again",
					})
				}
			}
			return nil
		}
	}
	avatars := compare(c.Avatars, avatarChannel, func(ctx context.Context, ids []string) ([]index.Card, error) {
		return cardsOf(readAvatars(ctx, c.States, ids))
	})
	scenes := compare(c.Scenes, sceneChannel, func(ctx context.Context, ids []string) ([]index.Card, error) {
		return cardsOf(readScenes(ctx, c.States, ids))
	})
	known, err := kit.EachBatch(ctx, c.States, map[string]kit.Visit{avatarPrefix: avatars, scenePrefix: scenes})
	if err == nil {
		err = kit.EachUnknown(ctx, c.Scenes, allScenes, scenePrefix, known, scenes)
	}
	return found, err
}

// cardsOf returns the cards of avatars or scenes that were read. That of one that does not exist is
// zero.
func cardsOf[D interface {
	comparable
	card() index.Card
}](list []D, err error) ([]index.Card, error) {
	cards := make([]index.Card, len(list))
	for i, d := range list {
		if d != *new(D) {
			cards[i] = d.card()
		}
	}
	return cards, err
}

// differs says how a card differs from that of the record, or returns "". A zero card is none.
func differs(card, record index.Card) string {
	switch {
	case card.ID == record.ID && card.Version == record.Version && maps.Equal(card.Lists, record.Lists):
		return ""
	case card.ID == "":
		return "it has no card"
	case record.ID == "":
		return "it has a card, but no record"
	}
	return fmt.Sprintf("its card is not that of the record with the id %d", record.Version)
}
