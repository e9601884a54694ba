package profile

import "go.yaml.in/yaml/v3"

// root returns the mapping of the document. It makes one for an empty file.
func (f *File) root() *yaml.Node {
	if len(f.doc.Content) == 0 {
		f.doc = yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{{Kind: yaml.MappingNode}}}
	}
	return f.doc.Content[0]
}

// index returns the index of the value of a key in a mapping, or -1. The content of a mapping has
// keys and values in turn.
func index(mapping *yaml.Node, key string) int {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return i + 1
		}
	}
	return -1
}

// child returns the mapping that is the value of a key. It makes one if there is none.
func child(mapping *yaml.Node, key string) *yaml.Node {
	if i := index(mapping, key); i >= 0 && mapping.Content[i].Kind == yaml.MappingNode {
		return mapping.Content[i]
	}
	value := &yaml.Node{Kind: yaml.MappingNode}
	set(mapping, key, value)
	return value
}

// set sets the value of a key. It keeps the comments of the old value.
func set(mapping *yaml.Node, key string, value *yaml.Node) {
	mapping.Style = 0 // {} becomes lines
	i := index(mapping, key)
	if i < 0 {
		mapping.Content = append(mapping.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, value)
		return
	}
	old := mapping.Content[i]
	value.HeadComment, value.LineComment, value.FootComment = old.HeadComment, old.LineComment, old.FootComment
	mapping.Content[i] = value
}

// remove removes a key with its value.
func remove(mapping *yaml.Node, key string) {
	if i := index(mapping, key); i >= 0 {
		mapping.Content = append(mapping.Content[:i-1], mapping.Content[i+1:]...)
	}
}
