// Package nearest finds the names that a person may have meant by a mistyped word.
package nearest

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/pflag"
)

// most is how many names are returned.
const most = 3

// Names returns the names that are like word, at most three, the most similar first: those that the
// fewest edits make of it, and those that begin with it.
func Names(word string, names []string) []string {
	type candidate struct {
		name   string
		edits  int
		longer bool // it begins with the word
	}
	var list []candidate
	lower, fewest := strings.ToLower(word), max(1, min(3, utf8.RuneCountInString(word)/3))
	for _, name := range names {
		c := candidate{name, distance(lower, strings.ToLower(name)), word != "" && strings.HasPrefix(strings.ToLower(name), lower)}
		if c.edits <= fewest {
			fewest = c.edits
		}
		list = append(list, c)
	}
	list = slices.DeleteFunc(list, func(c candidate) bool { return c.edits > fewest && !c.longer })
	slices.SortFunc(list, func(a, b candidate) int { return cmp.Or(cmp.Compare(a.edits, b.edits), cmp.Compare(a.name, b.name)) })
	found := make([]string, 0, most)
	for _, c := range list[:min(most, len(list))] {
		found = append(found, c.name)
	}
	return found
}

// Flags is like Question for a flag without its dashes, which all flags have in common.
func Flags(word string, flags *pflag.FlagSet) string {
	var names []string
	flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	found := Names(word, names)
	for i, name := range found {
		found[i] = "--" + name
	}
	return question(found)
}

// Question returns "; did you mean X or Y?" with the names that are like word, or "".
func Question(word string, names []string) string {
	return question(Names(word, names))
}

func question(found []string) string {
	if len(found) > 0 {
		return "; did you mean " + strings.Join(found, " or ") + "?"
	}
	return ""
}

// distance returns how many characters must be inserted, removed, replaced or swapped with their
// neighbor to make b of a (the restricted Damerau-Levenshtein distance).
func distance(a, b string) int {
	from, to := []rune(a), []rune(b)
	rows := [3][]int{make([]int, len(to)+1), make([]int, len(to)+1), make([]int, len(to)+1)}
	for j := range rows[1] {
		rows[1][j] = j
	}
	for i := 1; i <= len(from); i++ {
		before, last, row := rows[0], rows[1], rows[2]
		row[0] = i
		for j := 1; j <= len(to); j++ {
			change := 1
			if from[i-1] == to[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && from[i-1] == to[j-2] && from[i-2] == to[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		rows = [3][]int{last, row, before}
	}
	return rows[1][len(to)]
}
