package scene

import (
	"switchboard/broker/extension"
	"switchboard/broker/namespace"
)

// Extension returns a function for broker.Options.Extensions.
func Extension(opts Options) func(*extension.Host) (extension.Extension, error) {
	return func(host *extension.Host) (extension.Extension, error) {
		s, err := New(host, opts)
		if err != nil {
			return extension.Extension{}, err
		}
		return s.Extension(), nil
	}
}

// Extension returns the extension of a broker: methods, calls, the channels of avatars, scenes and
// worlds, and the round.
func (s *Scenes) Extension() extension.Extension {
	return extension.Extension{
		Name: "scenes", Methods: s.methods(), Calls: s.calls(), Channels: s.channels(), Run: s.Run,
		Metrics: s.budget.Metrics(), Owned: s.owned(),
	}
}

func (s *Scenes) channels() []extension.ChannelKind {
	scenes := namespace.Rule{
		Name: scenePrefix + "*", StateKeep: namespace.KeepForever, Grace: namespace.GraceNever,
		Subscribe: *s.opts.Read, State: *s.opts.Read, History: *s.opts.Read, Publish: s.opts.Publish, Presence: s.opts.Presence,
	}
	for _, name := range s.opts.Fields {
		scenes.Fields = append(scenes.Fields, namespace.FieldRule{
			Pattern: ownGroup + "{n}/" + name, Write: namespace.Users, Of: placeField("{n}"), Bytes: s.opts.FieldBytes,
			Max: s.maxOwn(name),
		})
	}
	closed := func(prefix string) extension.ChannelKind {
		return extension.ChannelKind{Rule: namespace.Rule{Name: prefix + "*", StateKeep: namespace.KeepForever}}
	}
	return []extension.ChannelKind{closed(avatarPrefix), closed(worldPrefix), {Rule: scenes}}
}

// maxOwn returns the most fields of one avatar that fit a name of Options.Fields, or 0 if the name
// itself is the limit.
func (s *Scenes) maxOwn(name string) int {
	if name != "*" {
		return 0
	}
	return MaxOwnFields
}
