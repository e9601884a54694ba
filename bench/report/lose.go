package report

import (
	"fmt"
	"slices"
)

// losses says in words where a peer is better than a row of ours. In like both keep their
// messages in the same place, in memory or in Redis; in unlike they do not.
func (r Run) losses() (like, unlike []string) {
	for _, s := range r.known() {
		for _, m := range s.metrics {
			if m.neutral {
				continue
			}
			for _, x := range r.xs(s.id, m.id) {
				like = append(like, r.lossesAt(s, m, x, true)...)
				unlike = append(unlike, r.lossesAt(s, m, x, false)...)
			}
		}
	}
	return like, unlike
}

// missed says which targets were missed.
func (r Run) missed() (texts []string) {
	for _, v := range r.judge() {
		if v.measured && !v.met {
			texts = append(texts, fmt.Sprintf("%s: %s, where %s was wanted.", v.Work, v.figure.in(v.unit), v.bar()))
		}
	}
	return texts
}

// lossesAt are those at one point: to peers of the same kind of store, or to those of the other.
func (r Run) lossesAt(s scenario, m metric, x float64, like bool) (texts []string) {
	for _, system := range r.systems(s.id) {
		own, ok := summary(r.values(s.id, system, m.id, x))
		if !ok || !ours(system) {
			continue
		}
		var better []string
		for _, other := range r.systems(s.id) {
			if !peer(other) || like != (inMemory(other) == inMemory(system)) {
				continue
			}
			if f, ok := summary(r.values(s.id, other, m.id, x)); ok && m.better(f.median, own.median) {
				better = append(better, fmt.Sprintf("%s has %s", other, f.in(m.unit)))
			}
		}
		if len(better) == 0 {
			continue
		}
		where := s.title + ", " + m.name
		if x != 0 {
			where += ", " + s.point(x)
		}
		slices.Sort(better)
		texts = append(texts, fmt.Sprintf("%s: %s has %s; %s.", where, system, own.in(m.unit), join(better)))
	}
	return texts
}

// join is a list in words.
func join(words []string) string {
	text := ""
	for i, w := range words {
		switch {
		case i == 0:
		case i == len(words)-1:
			text += " and "
		default:
			text += ", "
		}
		text += w
	}
	return text
}
