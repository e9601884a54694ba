package scene

import (
	"context"
	"fmt"
	"strings"

	"switchboard/internal/state"
	"switchboard/janitor/task"
	"switchboard/kit"
	"switchboard/kit/index"
	"switchboard/queue"
)

// CheckOptions are the stores that the checks, and the rounds of a janitor, read.
type CheckOptions struct {
	States          kit.States
	Avatars, Scenes index.Index
}

// Checks returns the checks of avatars and scenes. They read the channels of all of them.
func Checks(o CheckOptions) []task.Check {
	c := checker{o.States, avatarsIn(o.States, o.Avatars), scenesIn(o.States, o.Scenes)}
	return []task.Check{kit.Check("places", c.places), kit.Check("scene names", c.names), kit.Check("scene lists", c.cards)}
}

// Restore returns the rounds of a janitor that make the brokers compute again the cards of avatars
// and scenes that are not there, or older than the records, see [kit.Restore].
func Restore(o CheckOptions) []task.Round {
	avatars, scenes := avatarsIn(o.States, o.Avatars), scenesIn(o.States, o.Scenes)
	return []task.Round{avatars.Restore("avatars", o.States), scenes.Restore("scenes", o.States)}
}

type checker struct {
	states  kit.States
	avatars kit.Documents[*storedAvatar]
	scenes  kit.Documents[*storedScene]
}

// cards finds avatars and scenes whose card is not that of the record, and cards of scenes without
// a record. It reads the records by their channels: a lost card is in no list.
func (c *checker) cards(ctx context.Context, f *kit.Findings) error {
	scenes := c.scenes.Compare(f)
	known, err := kit.EachBatch(ctx, c.states, map[string]kit.Visit{avatarPrefix: c.avatars.Compare(f), scenePrefix: scenes})
	if err != nil {
		return err
	}
	return kit.EachUnknown(ctx, c.scenes.Index, allScenes, scenePrefix, known, scenes)
}

// eachScene calls visit for each scene.
func (c *checker) eachScene(ctx context.Context, visit func(*storedScene) error) error {
	_, err := kit.EachBatch(ctx, c.states, map[string]kit.Visit{scenePrefix: func(ctx context.Context, ids []string) error {
		scenes, err := c.scenes.Each(ctx, ids)
		for _, s := range scenes {
			if err == nil && s.Exists() {
				err = visit(s)
			}
		}
		return err
	}})
	return err
}

const roundRemedy = "a round of a broker with scenes corrects it after the next change"

// places finds places of avatars whose record does not name the scene, places that are in a deleted
// scene, and places that a transfer has not confirmed.
func (c *checker) places(ctx context.Context, f *kit.Findings) error {
	return c.eachScene(ctx, func(scene *storedScene) error {
		places, err := readPlaces(ctx, c.states, scene.key)
		if err != nil || len(places) == 0 {
			return err
		}
		avatars, err := c.avatars.Each(ctx, avatarsOf(places))
		if err != nil {
			return err
		}
		for i, p := range places {
			if problem := p.problem(scene, avatars[i]); problem != "" {
				f.Add(sceneChannel(scene.key), roundRemedy, "%s: %s", placeField(p.avatar), problem)
			}
		}
		return nil
	})
}

// problem says what is wrong with the place of an avatar in a scene, or returns "".
func (p *listedPlace) problem(scene *storedScene, a *storedAvatar) string {
	switch {
	case scene.Value.Status == Deleted:
		return "the scene is deleted"
	case !a.Exists():
		return "there is no such avatar"
	case a.Value.Scene != scene.key:
		return fmt.Sprintf("the record of the avatar names the scene %q", a.Value.Scene)
	case p.leased():
		return "the place has a lease, but the avatar is there"
	case p.Holder != state.UserHolder(a.Value.User):
		return fmt.Sprintf("the place belongs to %s, the avatar to the user %s", p.Holder, a.Value.User)
	}
	return ""
}

// names finds scenes that do not have their name in their world, and names without a scene.
func (c *checker) names(ctx context.Context, f *kit.Findings) error {
	worlds := map[string]map[string]storedName{} // by world, and by the name of the field
	_, err := kit.EachBatch(ctx, c.states, map[string]kit.Visit{worldPrefix: func(ctx context.Context, ids []string) (err error) {
		for _, world := range ids {
			if worlds[world], err = c.readNames(ctx, world); err != nil {
				return err
			}
		}
		return nil
	}})
	if err != nil {
		return err
	}
	used := map[string]bool{} // by world and field
	err = c.eachScene(ctx, func(s *storedScene) error {
		if s.Value.Status == Deleted {
			return nil
		}
		field, world := nameField(s.Value.Name), worldChannel(s.Value.World)
		switch n := worlds[s.Value.World][field]; {
		case n.Value != s.key:
			f.Add(sceneChannel(s.key), roundRemedy, "%s of %s does not have this scene", field, world)
		case n.leased:
			f.Add(sceneChannel(s.key), roundRemedy, "%s of %s is not confirmed", field, world)
		}
		used[world+" "+field] = true
		return nil
	})
	for world, names := range worlds {
		for field, n := range names {
			if channel := worldChannel(world); !n.leased && !used[channel+" "+field] {
				f.Add(channel, roundRemedy, "%s names the scene %s, which does not have the name", field, n.Value)
			}
		}
	}
	return err
}

func (c *checker) readNames(ctx context.Context, world string) (map[string]storedName, error) {
	names := map[string]storedName{}
	read := queue.StateRead{Channel: worldChannel(world), Prefix: nameGroup, Bytes: state.PageBytes}
	for page, err := range kit.StatePages(ctx, c.states, read) {
		if err != nil {
			return nil, err
		}
		for _, f := range page.Fields {
			if !strings.HasPrefix(f.Name, nameGroup) {
				continue
			}
			if names[f.Name], err = parseName(f); err != nil {
				return nil, fmt.Errorf("read %s: %w", worldChannel(world), err)
			}
		}
	}
	return names, nil
}
