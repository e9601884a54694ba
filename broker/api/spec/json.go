package spec

import (
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// toJSON returns a YAML document as JSON. Members keep their order, unlike with a Go map.
func toJSON(text []byte) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	return appendJSON(nil, document.Content[0])
}

// appendJSON appends the JSON of a node to dst.
func appendJSON(dst []byte, n *yaml.Node) (_ []byte, err error) {
	switch n.Kind {
	case yaml.MappingNode:
		dst = append(dst, '{')
		for i := 0; i < len(n.Content); i += 2 {
			if i > 0 {
				dst = append(dst, ',')
			}
			name, err := json.Marshal(n.Content[i].Value)
			if err != nil {
				return nil, err
			}
			if dst, err = appendJSON(append(append(dst, name...), ':'), n.Content[i+1]); err != nil {
				return nil, err
			}
		}
		return append(dst, '}'), nil
	case yaml.SequenceNode:
		dst = append(dst, '[')
		for i, item := range n.Content {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = appendJSON(dst, item); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	case yaml.ScalarNode:
		var value any
		if err := n.Decode(&value); err != nil {
			return nil, err
		}
		scalar, err := json.Marshal(value)
		return append(dst, scalar...), err
	}
	return nil, fmt.Errorf("line %d: aliases are not used in these documents", n.Line)
}
