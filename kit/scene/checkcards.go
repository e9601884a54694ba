package scene

import (
	"context"
	"fmt"
	"maps"

	"switchboard/janitor/task"
	"switchboard/kit/index"
)

// cards finds avatars and scenes whose card is not that of the record, and cards of scenes without
// a record. It reads the records by their channels: a lost card is in no list.
func (c checker) cards(ctx context.Context) (found []task.Finding, err error) {
	compare := func(lists index.Index, ids []string, channel func(id string) string, records []index.Card) error {
		cards, err := lists.Get(ctx, ids...)
		for i, want := range records {
			if err != nil {
				break
			}
			if problem := differs(cards[i], want); problem != "" {
				found = append(found, task.Finding{
					Subject: channel(ids[i]), Problem: problem,
					Remedy: "brokers correct it some minutes after a failover; if it stays, any change of the record writes the card again",
				})
			}
		}
		return err
	}
	err = c.eachBatch(ctx, avatarPrefix, func(ids []string) error {
		records := make([]index.Card, len(ids))
		avatars, err := readAvatars(ctx, c.States, ids)
		if err != nil {
			return err
		}
		for i, a := range avatars {
			if a != nil {
				records[i] = a.card()
			}
		}
		return compare(c.Avatars, ids, avatarChannel, records)
	})
	if err != nil {
		return nil, err
	}
	compareScenes := func(ids []string) error {
		records := make([]index.Card, len(ids))
		scenes, err := readScenes(ctx, c.States, ids)
		if err != nil {
			return err
		}
		for i, s := range scenes {
			if s != nil {
				records[i] = s.card()
			}
		}
		return compare(c.Scenes, ids, sceneChannel, records)
	}
	known := map[string]bool{}
	err = c.eachBatch(ctx, scenePrefix, func(ids []string) error {
		for _, id := range ids {
			known[id] = true
		}
		return compareScenes(ids)
	})
	if err != nil {
		return nil, err
	}
	for cards, err := range index.Pages(ctx, c.Scenes, index.Query{List: allScenes}) {
		if err != nil {
			return nil, err
		}
		var ids []string
		for _, card := range cards {
			if !known[card.ID] {
				ids = append(ids, card.ID)
			}
		}
		if err := compareScenes(ids); err != nil { // a scene may be new
			return nil, err
		}
	}
	return found, nil
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
