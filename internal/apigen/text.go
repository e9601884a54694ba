package apigen

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// width is the greatest number of columns of a comment.
const width = 100

// comment returns a text as lines of a comment in Go.
func comment(indent, text string) string {
	var out strings.Builder
	for _, line := range wrap(text, width-len(indent)-3) {
		out.WriteString(indent + "// " + line + "\n")
	}
	return out.String()
}

// wrap returns the lines of a text.
func wrap(text string, most int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > most {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}

// verbs are the words with which the text of a type begins if it is no noun.
var verbs = []string{"Asks", "Changes", "Describes", "Has", "Names", "Says", "Selects"}

// goSentence returns the comment of a type or a method, which begins with its name. plural replaces
// "is" by "are".
func goSentence(name, text string, isType bool) string {
	text = unquote(text, nil)
	first, _, _ := strings.Cut(text, " ")
	switch {
	case text == "":
		return ""
	case !isType || slices.Contains(verbs, first):
		return name + " " + lowerFirst(text)
	case strings.HasSuffix(first, "s"):
		return name + " are " + lowerFirst(text)
	}
	return name + " is " + lowerFirst(text)
}

// quoted are the names in a text.
var quoted = regexp.MustCompile("`[^`]*`")

// unquote removes the backquotes from a text. Names that renamed has are replaced.
func unquote(text string, renamed map[string]string) string {
	return quoted.ReplaceAllStringFunc(text, func(name string) string {
		name = strings.Trim(name, "`")
		if other := renamed[name]; other != "" {
			return other
		}
		return name
	})
}

// lowerFirst returns a text that continues a sentence. Names such as JSON stay.
func lowerFirst(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if second, _ := utf8.DecodeRuneInString(text[size:]); unicode.IsUpper(second) || strings.HasPrefix(text, "Unix") {
		return text
	}
	return string(unicode.ToLower(first)) + text[size:]
}

// sentence returns the text of a member, which begins with "true: " if it is about that value.
func sentence(text string) string {
	if rest, found := strings.CutPrefix(text, "true: "); found {
		return upperFirst(rest)
	}
	return text
}

// upperFirst returns a text that begins a sentence.
func upperFirst(text string) string {
	if text == "" {
		return ""
	}
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// initialisms are the parts of names that Go writes in upper case.
var initialisms = map[string]bool{"id": true, "ms": true, "ttl": true, "url": true, "rss": true}

// goName returns the exported name for a member, such as HoldMS for hold_ms.
func goName(name string) string {
	var out strings.Builder
	for part := range strings.SplitSeq(name, "_") {
		if initialisms[part] {
			out.WriteString(strings.ToUpper(part))
		} else {
			out.WriteString(upperFirst(part))
		}
	}
	return out.String()
}
