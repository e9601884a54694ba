package report

import (
	"fmt"
	"slices"
)

// peerWins describes where a peer is better than one of our systems. In sameStore both have the
// same kind of store, memory or Redis. In otherStore one has memory and the other Redis.
func (r Run) peerWins() (sameStore, otherStore []string) {
	for _, s := range r.scenarios() {
		for _, m := range s.metrics {
			if m.neutral {
				continue
			}
			for _, x := range r.xs(s.id, m.id) {
				sameStore = append(sameStore, r.peerWinsAt(s, m, x, true)...)
				otherStore = append(otherStore, r.peerWinsAt(s, m, x, false)...)
			}
		}
	}
	return sameStore, otherStore
}

// missed describes the targets that were missed.
func (r Run) missed() (texts []string) {
	for _, v := range r.evaluate() {
		if v.measured && !v.met {
			texts = append(texts, fmt.Sprintf("%s: %s; the target is %s.", v.Work, v.figure.format(v.unit), v.limitText()))
		}
	}
	return texts
}

// peerWinsAt describes where peers are better at one point: peers with the same kind of store if
// sameStore is set, else the others.
func (r Run) peerWinsAt(s scenario, m metric, x float64, sameStore bool) (texts []string) {
	for _, system := range r.systems(s.id) {
		own, ok := newFigure(r.values(s.id, system, m.id, x))
		if !ok || !isOurs(system) {
			continue
		}
		var better []string
		for _, other := range r.systems(s.id) {
			if !isPeer(other) || sameStore != (inMemory(other) == inMemory(system)) {
				continue
			}
			if f, ok := newFigure(r.values(s.id, other, m.id, x)); ok && m.better(f.median, own.median) {
				better = append(better, fmt.Sprintf("%s has %s", other, f.format(m.unit)))
			}
		}
		if len(better) == 0 {
			continue
		}
		where := s.title + ", " + m.name
		if x != 0 {
			where += ", " + s.pointName(x)
		}
		slices.Sort(better)
		texts = append(texts, fmt.Sprintf("%s: %s has %s; %s.", where, system, own.format(m.unit), join(better)))
	}
	return texts
}

// join joins words with commas and "and".
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
