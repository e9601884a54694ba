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

// Checks returns the checks of avatars and scenes. They read every scene of the list.
func Checks(r kit.StateReader, scenes index.Index) []task.Check {
	c := checker{r, scenes}
	return []task.Check{
		{Name: "places", Apart: task.Apart, Find: c.places},
		{Name: "scene names", Apart: task.Apart, Find: c.names},
	}
}

type checker struct {
	kit.StateReader
	scenes index.Index
}

// eachPage calls visit for the scenes of each page of the list of all scenes.
func (c checker) eachPage(ctx context.Context, visit func([]*storedScene) error) error {
	for cards, err := range index.Pages(ctx, c.scenes, index.Query{List: allScenes, Limit: kit.DefaultPage}) {
		if err != nil {
			return err
		}
		ids := make([]string, len(cards))
		for i, card := range cards {
			ids[i] = card.ID
		}
		scenes, err := readScenes(ctx, c, ids)
		if err != nil {
			return err
		}
		if err := visit(scenes); err != nil {
			return err
		}
	}
	return nil
}

const roundRemedy = "a round of a broker with scenes corrects it after the next change"

// places finds places of avatars whose record does not name the scene, places that are in a deleted
// scene, and places that a transfer has not confirmed.
func (c checker) places(ctx context.Context) (found []task.Finding, err error) {
	err = c.eachPage(ctx, func(scenes []*storedScene) error {
		for _, scene := range scenes {
			if scene == nil {
				continue
			}
			list, err := c.placesOf(ctx, scene)
			if err != nil {
				return err
			}
			found = append(found, list...)
		}
		return nil
	})
	return found, err
}

func (c checker) placesOf(ctx context.Context, scene *storedScene) (found []task.Finding, err error) {
	places, err := readPlaces(ctx, c, scene.key)
	if err != nil || len(places) == 0 {
		return nil, err
	}
	avatars, err := readAvatars(ctx, c, avatarsOf(places))
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
	worlds := map[string]map[string]*storedName{} // by world, and by the name of the field
	used := map[string]map[string]bool{}
	err = c.eachPage(ctx, func(scenes []*storedScene) error {
		for _, s := range scenes {
			if s == nil {
				continue
			}
			world := s.value.World
			if worlds[world] == nil {
				if worlds[world], err = c.readNames(ctx, world); err != nil {
					return err
				}
				used[world] = map[string]bool{}
			}
			field := nameField(s.value.Name)
			n := worlds[world][field]
			switch {
			case s.value.Status == Deleted:
				continue
			case n == nil || n.value != s.key:
				found = append(found, task.Finding{Subject: sceneChannel(s.key), Problem: fmt.Sprintf("%s of %s does not have this scene", field, worldChannel(world)), Remedy: roundRemedy})
			case n.leased:
				found = append(found, task.Finding{Subject: sceneChannel(s.key), Problem: fmt.Sprintf("%s of %s is not confirmed", field, worldChannel(world)), Remedy: roundRemedy})
			}
			used[world][field] = true
		}
		return nil
	})
	for world, names := range worlds {
		for field, n := range names {
			if !n.leased && !used[world][field] {
				found = append(found, task.Finding{Subject: worldChannel(world), Problem: fmt.Sprintf("%s names the scene %s, which does not have the name", field, n.value), Remedy: roundRemedy})
			}
		}
	}
	return found, err
}

func (c checker) readNames(ctx context.Context, world string) (map[string]*storedName, error) {
	names := map[string]*storedName{}
	read := queue.StateRead{Channel: worldChannel(world), Prefix: nameGroup, Bytes: state.PageBytes}
	for {
		o := c.ReadStates(ctx, []queue.StateRead{read})[0]
		if o.Err != nil {
			return nil, inChannel("read", worldChannel(world), o.Err)
		}
		for _, f := range o.Value.Fields {
			if !strings.HasPrefix(f.Name, nameGroup) {
				continue
			}
			v, err := decode[string](f.Field)
			if err != nil {
				return nil, inChannel("read", worldChannel(world), err)
			}
			names[f.Name] = &storedName{*v, f.Lease != 0}
		}
		if read.Cursor = o.Value.Next; read.Cursor == "" {
			return names, nil
		}
	}
}
