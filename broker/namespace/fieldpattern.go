package namespace

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"switchboard/internal/state"
)

// tokenKind is the kind of a token of a field pattern. The order is that of precedence.
type tokenKind uint8

const (
	tokenEnd     tokenKind = iota // the end of the pattern: nothing may follow
	tokenLiteral                  // text
	tokenUser                     // {user}: the part that is the escaped name of the writer's user
	tokenPart                     // {n}: any part
	tokenRest                     // *: any rest of at least one character
)

const partPlaceholder = "{n}"

type patternToken struct {
	kind tokenKind
	text string // of tokenLiteral
}

// fieldPattern is a pattern of field names, such as member/{user}. A part of a name is the text
// between two slashes.
type fieldPattern struct {
	tokens           []patternToken // tokenEnd is not stored
	hasUser, hasPart bool
}

// parseFieldPattern parses the pattern of a field rule.
func parseFieldPattern(text string) (p fieldPattern, err error) {
	if text == "" {
		return p, errors.New("the pattern is empty")
	}
	for rest := text; rest != ""; {
		end := strings.IndexAny(rest, "{*")
		if end < 0 {
			end = len(rest)
		}
		if end > 0 {
			p.tokens = append(p.tokens, patternToken{tokenLiteral, rest[:end]})
			rest = rest[end:]
			continue
		}
		kind, word := tokenRest, "*"
		switch {
		case strings.HasPrefix(rest, userPlaceholder):
			kind, word = tokenUser, userPlaceholder
		case strings.HasPrefix(rest, partPlaceholder):
			kind, word = tokenPart, partPlaceholder
		case rest[0] == '{':
			return p, fmt.Errorf("%.20q is neither %s nor %s", rest, userPlaceholder, partPlaceholder)
		}
		rest = rest[len(word):]
		switch {
		case kind == tokenRest && rest != "":
			return p, errors.New("a * may stand at the end only")
		case kind == tokenUser && p.hasUser, kind == tokenPart && p.hasPart:
			return p, fmt.Errorf("%s may stand only once", word)
		case rest != "" && rest[0] != '/':
			return p, fmt.Errorf("only a slash may follow %s", word)
		}
		p.hasUser, p.hasPart = p.hasUser || kind == tokenUser, p.hasPart || kind == tokenPart
		p.tokens = append(p.tokens, patternToken{kind: kind})
	}
	return p, p.checkName(text)
}

// checkName checks the pattern as if it were a name, with a letter instead of each placeholder.
func (p *fieldPattern) checkName(text string) error {
	name := strings.NewReplacer(userPlaceholder, "x", partPlaceholder, "x", "*", "x").Replace(text)
	if err := state.CheckName(name); err != nil {
		return messageOf(err)
	}
	if state.IsBackend(name) {
		return errors.New("fields that begin with $ always belong to the backend")
	}
	return nil
}

// literal returns the text before the first placeholder.
func (p *fieldPattern) literal() string {
	if p.tokens[0].kind == tokenLiteral {
		return p.tokens[0].text
	}
	return ""
}

// group returns the group whose fields all fit the pattern or another one with the same literal
// prefix: member/ for member/*, member/{user} and member/{n}. Other patterns are not a group.
func (p *fieldPattern) group() string {
	if len(p.tokens) == 2 && p.tokens[1].kind != tokenLiteral {
		if prefix := p.literal(); prefix != "" && state.Group(prefix) == prefix {
			return prefix
		}
	}
	return ""
}

// subgroup returns the group of each part at the placeholder, as a pattern: p/{n}/ for p/{n}/*.
// Other patterns have none.
func (p *fieldPattern) subgroup() fieldPattern {
	if len(p.tokens) != 4 || p.tokens[2] != (patternToken{tokenLiteral, "/"}) || p.tokens[3].kind != tokenRest {
		return fieldPattern{}
	}
	if prefix := p.literal(); prefix == "" || state.Group(prefix) != prefix {
		return fieldPattern{}
	}
	return fieldPattern{tokens: p.tokens[:3], hasUser: p.hasUser, hasPart: p.hasPart}
}

// compare orders patterns by precedence: the longest literal prefix first, and with equal prefixes
// an exact pattern, {user}, {n} and *. Patterns that are still equal are compared after that
// placeholder in the same way.
func (p *fieldPattern) compare(q *fieldPattern) int {
	for i := 0; i < len(p.tokens) || i < len(q.tokens); i++ {
		a, b := p.token(i), q.token(i)
		if c := cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(len(b.text), len(a.text)), cmp.Compare(a.text, b.text)); c != 0 {
			return c
		}
	}
	return 0
}

func (p *fieldPattern) token(i int) patternToken {
	if i < len(p.tokens) {
		return p.tokens[i]
	}
	return patternToken{}
}

// match is how a name fits a pattern.
type match struct {
	fits bool
	user string // the part at {user}
	part string // the part at {n}
}

// match compares a name with the pattern. Any part fits {user}.
func (p *fieldPattern) match(name string) (m match) {
	rest := name
	for _, t := range p.tokens {
		if t.kind == tokenLiteral {
			if !strings.HasPrefix(rest, t.text) {
				return match{}
			}
			rest = rest[len(t.text):]
			continue
		}
		end := strings.IndexByte(rest, '/')
		if end < 0 || t.kind == tokenRest {
			end = len(rest)
		}
		if end == 0 {
			return match{}
		}
		switch t.kind {
		case tokenUser:
			m.user = rest[:end]
		case tokenPart:
			m.part = rest[:end]
		}
		rest = rest[end:]
	}
	m.fits = rest == ""
	return m
}

// fill returns the name that the pattern has with these parts.
func (p *fieldPattern) fill(m match) string {
	if !p.hasUser && !p.hasPart {
		return p.literal()
	}
	var b strings.Builder
	for _, t := range p.tokens {
		switch t.kind {
		case tokenLiteral:
			b.WriteString(t.text)
		case tokenUser:
			b.WriteString(m.user)
		case tokenPart:
			b.WriteString(m.part)
		}
	}
	return b.String()
}
