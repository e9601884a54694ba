package queue

import (
	"os"
	"testing"

	"switchboard/internal/redistest"
)

// The Redis processes are shared by all tests. Each test has its own prefix.
var (
	server  *redistest.Server
	cluster *redistest.Cluster
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m, &server, &cluster)) }
