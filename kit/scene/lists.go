package scene

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"switchboard/internal/state"
	"switchboard/kit"
	"switchboard/kit/index"
)

// allScenes is the list of all scenes, also of the deleted ones.
const allScenes = "all"

// takenVersion is the version of the card that earlier releases have stored before the record of an
// avatar.
const takenVersion = 1

// The lists of avatars and scenes. A deleted one is in the list with the prefix deleted: instead.
func userList(user string) string   { return "user:" + part(user) }
func sceneList(scene string) string { return "scene:" + scene }
func worldList(world string) string { return "world:" + world }
func deletedList(of string) string  { return "deleted:" + of }

// part returns text as a part of the name of a list or a field. A long text is replaced by its
// hash, which no escaped text can be: "%h" is no escaped byte.
func part(text string) string {
	escaped := state.Escape(text)
	if len(escaped) <= 100 {
		return escaped
	}
	sum := sha256.Sum256([]byte(text))
	return "%h" + hex.EncodeToString(sum[:16])
}

// card returns the entry of an avatar in the lists. The list of its scene counts the avatars there.
func (a *storedAvatar) card() index.Card {
	lists := map[string]int64{userList(a.value.User): a.value.Created}
	if a.value.Status == Deleted {
		lists = map[string]int64{deletedList(userList(a.value.User)): a.value.Created}
	}
	if a.value.Scene != "" {
		lists[sceneList(a.value.Scene)] = 0
	}
	return index.Card{ID: a.key, Version: a.id, Lists: lists}
}

// card returns the entry of a scene in the lists.
func (c *storedScene) card() index.Card {
	list := worldList(c.value.World)
	if c.value.Status == Deleted {
		list = deletedList(list)
	}
	return index.Card{ID: c.key, Version: c.id, Lists: map[string]int64{list: c.value.Created, allScenes: c.value.Created}}
}

// readPage reads a page of a list, and the documents with its ids. next is the cursor of the next
// page, or "".
func readPage[T any](ctx context.Context, s *Scenes, i index.Index, q index.Query, read func(context.Context, kit.StateReader, []string) ([]T, error)) (list []T, next string, err error) {
	if err := kit.PageLimit(&q.Limit, true); err != nil {
		return nil, "", err
	}
	return kit.ReadPage(ctx, i, q, func(ctx context.Context, cards []index.Card) ([]T, error) { return read(ctx, s.host, index.IDs(cards)) })
}
