package snippets

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"switchboard/internal/declarations"
)

// surroundingsJS declares what the blocks take from the reader's page or backend.
const surroundingsJS = `
declare function show(...values: any[]): any;
declare function save(...values: any[]): any;
declare function reload(...values: any[]): any;
declare function decide(...values: any[]): any;
declare function draw(...values: any[]): any;
declare function render(...values: any[]): any;
declare const password: string, token: string, url: string, secret: string, webhookSecret: string, app: any, user: any, req: any, body: string;
declare const sb: import("switchboard-client").Switchboard, news: import("switchboard-client").Channel;
declare const backend: import("switchboard-client/server").Backend;
type Client = typeof import("switchboard-client").Switchboard;
declare const Switchboard: Client;
declare module "ws" { const WebSocket: any; export default WebSocket; }
declare module "react-native" { const AppState: import("switchboard-client").AppState & { currentState: string }; export { AppState }; }
declare module "@react-native-async-storage/async-storage" { const storage: import("switchboard-client").Storage; export default storage; }
declare module "@react-native-community/netinfo" { const NetInfo: any; export default NetInfo; }
declare module "express" { const express: any; export default express; }
declare module "pusher" { const Pusher: any; export default Pusher; }
declare module "pusher-js" { const Pusher: any; export default Pusher; }
declare module "socket.io" { const Server: any; export { Server }; }
declare module "socket.io-client" { const io: any; export { io }; }
declare module "centrifuge" { const Centrifuge: any; export { Centrifuge }; }
`

// inScript matches the script of a page in HTML.
var inScript = regexp.MustCompile(`(?s)<script[^>]*>\n?(.*?)</script>`)

// TestScripts compiles all JavaScript and TypeScript with the types of the client. What a block
// takes from the reader's program, or from a block before it, is declared in surroundingsJS.
func TestScripts(t *testing.T) {
	dir := t.TempDir()
	client, err := filepath.Abs(root + "/client/js")
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	places := map[string]block{}
	for _, page := range pages(t) {
		for i, b := range blocksOf(t, page) {
			code := b.code
			switch b.language {
			case "html":
				code = ""
				for _, m := range inScript.FindAllStringSubmatch(b.code, -1) {
					code += m[1]
				}
			case "js", "ts":
			default:
				continue
			}
			if skipped(b) {
				continue
			}
			extension := "js"
			if b.language == "ts" {
				extension = "ts"
			}
			name := fmt.Sprintf("%s-%d.%s", strings.NewReplacer("/", "-", ".", "-").Replace(page), i, extension)
			places[name] = b
			write(name, code+"\nexport {};\n")
		}
	}
	declarations.Build(t, client)
	if err := os.CopyFS(filepath.Join(dir, "switchboard"), os.DirFS(client+"/dist")); err != nil { // as the tutorials do
		t.Fatal(err)
	}
	write("surroundings.d.ts", surroundingsJS)
	write("tsconfig.json", `{"include":["*.js","*.ts"],"compilerOptions":{"allowJs":true,"checkJs":true,"noEmit":true,"strict":false,"target":"es2023","module":"esnext",
		"moduleResolution":"bundler","lib":["es2023","dom","dom.iterable"],"skipLibCheck":true,"types":["node"],"typeRoots":["`+client+`/node_modules/@types"],
		"paths":{"switchboard-client":["`+client+`/dist/index.d.ts"],"switchboard-client/kit":["`+client+`/dist/kit/index.d.ts"],
		"switchboard-client/server":["`+client+`/dist/server/index.d.ts"]}}}`)
	out, err := exec.CommandContext(t.Context(), filepath.Join(client, "node_modules/.bin/tsc"), "-p", dir, "--pretty", "false").CombinedOutput()
	if err == nil {
		return
	}
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, " ") {
			continue // more about the line before
		}
		if strings.Contains(line, ".js(") && strings.Contains(line, "does not exist on type 'Json'") {
			continue // JavaScript does not say the type of what arrives
		}
		if strings.Contains(line, "Type 'void' is not assignable to type 'string'") {
			continue // the global variable name of a browser, where the reader has a name
		}
		name, rest, _ := strings.Cut(filepath.Base(line), "(")
		b, known := places[name]
		if !known {
			t.Error(line)
			continue
		}
		t.Errorf("%s:%d, in the block (%s", b.page, b.line, rest)
	}
}
