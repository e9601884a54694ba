package js_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"switchboard/kit/kittest"
)

// The programs of the empty project. Each one connects, publishes and receives.
var programs = map[string]string{
	"esm.mjs": `
import WebSocket from "ws";
import { Switchboard } from "switchboard-client";
import { Rooms } from "switchboard-client/kit";
import { Backend } from "switchboard-client/server";
run(WebSocket, Switchboard, Rooms, Backend);
`,
	"both.mjs": `
import { createRequire } from "node:module";
import WebSocket from "ws";
import { Switchboard, SwitchboardError } from "switchboard-client";
import { Rooms } from "switchboard-client/kit";
import { ApiError, Backend } from "switchboard-client/server";
const require = createRequire(import.meta.url);
const common = ["", "/kit", "/server"].map((entry) => require("switchboard-client" + entry));
const same = [Switchboard, Rooms, Backend].every((own, i) => own === common[i][own.name]);
if (!same || !(new ApiError("x", "y") instanceof common[0].SwitchboardError)) throw new Error("two copies");
async function buyTicket(sb) {
  await sb.call("no.such");
}
const sb = new Switchboard(process.argv[2].replace("http", "ws") + "/ws", { WebSocket });
const error = await buyTicket(sb).catch((error) => error);
await sb.close();
if (!(error instanceof SwitchboardError)) throw error;
const stack = [/at Switchboard\.call|at async Switchboard\.call/, /at async buyTicket .*both\.mjs/];
if (process.execArgv.includes("--enable-source-maps")) stack.push(/switchboard-client\/src\/switchboard\.ts/);
for (const line of stack) if (!line.test(error.stack)) throw new Error("not in the stack: " + line + error.stack);
run(WebSocket, Switchboard, Rooms, Backend);
`,
	"common.cjs": `
const { WebSocket } = require("ws");
const { Switchboard } = require("switchboard-client");
const { Rooms } = require("switchboard-client/kit");
const { Backend } = require("switchboard-client/server");
run(WebSocket, Switchboard, Rooms, Backend);
`,
}

const run = `
async function run(WebSocket, Switchboard, Rooms, Backend) {
  const [, , http] = process.argv;
  const sb = new Switchboard(http.replace("http", "ws") + "/ws", { WebSocket, user: "alice" });
  new Rooms(sb);
  const news = sb.channel("news");
  const received = new Promise((resolve) => news.on("message", resolve));
  await news.subscribe();
  await new Backend(http).push({ channel: "news", data: { hello: 1 } });
  console.log(JSON.stringify(await received));
  sb.close();
}
`

const typed = `
import { Switchboard } from "switchboard-client";
import { Rooms } from "switchboard-client/kit";
import { Backend } from "switchboard-client/server";

const sb = new Switchboard("ws://127.0.0.1:8080/ws");
sb.channel("news").on("message", (data: unknown, { id }) => console.log(data, id.toFixed()));
void new Rooms(sb).get("7").then((info) => info.room.status);
void new Backend("http://127.0.0.1:8080").servers();
// @ts-expect-error the types are not any
sb.nothing();
`

// TestPack installs the package that npm pack makes of the sources alone into an empty project,
// without the registry, and uses it there: as ESM, as CommonJS, and by TypeScript with each way to
// find modules.
func TestPack(t *testing.T) {
	t.Parallel()
	readSources(t)
	dir := t.TempDir()
	command(t, copySources(t), "npm", "pack", "--silent", "--pack-destination", dir)
	packed, err := filepath.Glob(filepath.Join(dir, "switchboard-client-*.tgz"))
	if err != nil || len(packed) != 1 {
		t.Fatalf("%v, %v", packed, err)
	}
	app := filepath.Join(dir, "app")
	write(t, filepath.Join(app, "package.json"), `{"name":"app","private":true}`)
	command(t, app, "npm", "install", "--silent", "--offline", "--no-audit", "--no-fund", packed[0])
	if list, err := os.ReadDir(filepath.Join(app, "node_modules")); err != nil || len(list) != 2 { // and .package-lock.json
		t.Errorf("the package brings others: %v, %v", list, err)
	}
	modules, err := filepath.Abs("node_modules")
	if err == nil {
		err = os.Symlink(filepath.Join(modules, "ws"), filepath.Join(app, "node_modules", "ws"))
	}
	if err != nil {
		t.Fatal(err)
	}
	checkSourceMaps(t, filepath.Join(app, "node_modules", "switchboard-client"))
	url := "http://" + kittest.NewMemory().Start(t, nil).HTTP
	for name, program := range programs {
		write(t, filepath.Join(app, name), program+run)
		for _, maps := range []string{"--no-enable-source-maps", "--enable-source-maps"} {
			if out := command(t, app, "node", maps, name, url); strings.TrimSpace(out) != `{"hello":1}` {
				t.Errorf("%s %s: %q", maps, name, out)
			}
		}
	}
	for module, resolution := range map[string]string{"nodenext": "nodenext", "esnext": "bundler", "preserve": "bundler"} {
		write(t, filepath.Join(app, "main.ts"), typed)
		command(t, app, filepath.Join(modules, ".bin", "tsc"), "--noEmit", "--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess",
			"--target", "es2022", "--lib", "es2022,dom,dom.iterable", "--types", "", "--module", module, "--moduleResolution", resolution, "main.ts")
	}
}

// copySources returns a copy of the package as it is in a fresh clone, without dist.
func copySources(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"README.md", "build.mjs", "types.mjs", "package.json", "tsconfig.json"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), string(text))
	}
	modules, err := filepath.Abs("node_modules")
	if err == nil {
		err = os.Symlink(modules, filepath.Join(dir, "node_modules"))
	}
	if err == nil {
		err = os.CopyFS(filepath.Join(dir, "src"), os.DirFS("src"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// checkSourceMaps checks that each script of a package has a source map, whose sources are there.
func checkSourceMaps(t *testing.T, dir string) {
	t.Helper()
	for name, script := range readFiles(t, dir) {
		if !strings.HasSuffix(name, "/index.js") && !strings.HasSuffix(name, "/index.cjs") {
			continue
		}
		path := filepath.Join(dir, name)
		if !strings.HasSuffix(string(script), "\n//# sourceMappingURL="+filepath.Base(name)+".map\n") {
			t.Errorf("%s names no source map", name)
		}
		text, err := os.ReadFile(path + ".map")
		var sourceMap struct{ Sources []string }
		if err == nil {
			err = json.Unmarshal(text, &sourceMap)
		}
		if err != nil || len(sourceMap.Sources) == 0 {
			t.Fatalf("%s: %d sources, %v", name, len(sourceMap.Sources), err)
		}
		for _, source := range sourceMap.Sources {
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), source)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// command runs a command in a directory and returns what it prints.
func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	var errors strings.Builder
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s%s", name, args, err, out, &errors)
	}
	return string(out)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
