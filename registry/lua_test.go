package registry

import (
	"testing"

	"switchboard/internal/redistest"
)

func TestScriptHeaders(t *testing.T) { redistest.CheckScripts(t, single.Client(t), luaFiles) }
