package queue

import (
	"testing"

	"switchboard/internal/redistest"
)

func TestScriptHeaders(t *testing.T) { redistest.CheckScripts(t, server.Client(t), luaFiles) }
