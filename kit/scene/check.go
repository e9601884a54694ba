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
	c := checker{o}
	return []task.Check{
		{Name: "places", Apart: task.Apart, Find: c.places},
		{Name: "scene names", Apart: task.Apart, Find: c.names},
		{Name: "scene lists", Apart: task.Apart, Find: c.cards},
	}
}

type checker struct{ CheckOptions }

// eachScene calls visit for each scene that has a record.
func (c checker) eachScene(visit func(context.Context, *storedScene) error) kit.Visit {
	return func(ctx context.Context, ids []string) error {
		scenes, err := readScenes(ctx, c.States, ids)
		for _, s := range scenes {
			if err == nil && s != nil {
				err = visit(ctx, s)
			}
		}
		return err
	}
}

const roundRemedy = "a round of a broker with scenes corrects it after the next change"

// places finds places of avatars whose record does not name the scene, places that are in a deleted
// scene, and places that a transfer has not confirmed.
func (c checker) places(ctx context.Context) (found []task.Finding, err error) {
	_, err = kit.EachBatch(ctx, c.States, map[string]kit.Visit{scenePrefix: c.eachScene(func(ctx context.Context, s *storedScene) error {
		list, err := c.placesOf(ctx, s)
		found = append(found, list...)
		return err
	})})
	return found, err
}

func (c checker) placesOf(ctx context.Context, scene *storedScene) (found []task.Finding, err error) {
	places, err := readPlaces(ctx, c.States, scene.key)
	if err != nil || len(places) == 0 {
		return nil, err
	}
	avatars, err := readAvatars(ctx, c.States, avatarsOf(places))
	if err != nil {
		return nil, err
	}
	for i, p := range places {
		problem := ""
		switch a := avatars[i]; {
		case scene.value.Status == Deleted:
			problem = "the scene is deleted"
		case a == nil:
			problem = "there is no such avatar"
		case a.value.Scene != scene.key:
			problem = fmt.Sprintf("the record of the avatar names the scene %q", a.value.Scene)
		case p.leased():
			problem = "the place has a lease, but the avatar is there"
		case p.Holder != state.UserHolder(a.value.User):
			problem = fmt.Sprintf("the place belongs to %s, the avatar to the user %s", p.Holder, a.value.User)
		default:
			continue
		}
		found = append(found, task.Finding{Subject: sceneChannel(scene.key), Problem: placeField(p.avatar) + ": " + problem, Remedy: roundRemedy})
	}
	return found, nil
}

// names finds scenes that do not have their name in their world, and names without a scene.
func (c checker) names(ctx context.Context) (found []task.Finding, err error) {
	report := func(channel, format string, args ...any) {
		found = append(found, task.Finding{Subject: channel, Problem: fmt.Sprintf(format, args...), Remedy: roundRemedy})
	}
	worlds := map[string]map[string]*storedName{} // by world, and by the name of the field
	_, err = kit.EachBatch(ctx, c.States, map[string]kit.Visit{worldPrefix: func(ctx context.Context, ids []string) (err error) {
		for _, world := range ids {
			if worlds[world], err = c.readNames(ctx, world); err != nil {
				return err
			}
		}
		return nil
	}})
	if err != nil {
		return nil, err
	}
	used := map[string]bool{} // by world and field
	_, err = kit.EachBatch(ctx, c.States, map[string]kit.Visit{scenePrefix: c.eachScene(func(_ context.Context, s *storedScene) error {
		if s.value.Status == Deleted {
			return nil
		}
		field, world := nameField(s.value.Name), worldChannel(s.value.World)
		switch n := worlds[s.value.World][field]; {
		case n == nil || n.value != s.key:
			report(sceneChannel(s.key), "%s of %s does not have this scene", field, world)
		case n.leased:
			report(sceneChannel(s.key), "%s of %s is not confirmed", field, world)
		}
		used[world+" "+field] = true
		return nil
	})})
	for world, names := range worlds {
		for field, n := range names {
			if channel := worldChannel(world); !n.leased && !used[channel+" "+field] {
				report(channel, "%s names the scene %s, which does not have the name", field, n.value)
			}
		}
	}
	return found, err
}

func (c checker) readNames(ctx context.Context, world string) (map[string]*storedName, error) {
	names := map[string]*storedName{}
	read := queue.StateRead{Channel: worldChannel(world), Prefix: nameGroup, Bytes: state.PageBytes}
	for page, err := range kit.StatePages(ctx, c.States, read) {
		if err != nil {
			return nil, err
		}
		for _, f := range page.Fields {
			if !strings.HasPrefix(f.Name, nameGroup) {
				continue
			}
			v, err := decode[string](f.Field)
			if err != nil {
				return nil, inChannel("read", worldChannel(world), err)
			}
			names[f.Name] = &storedName{*v, f.Lease != 0}
		}
	}
	return names, nil
}
