package configs

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/config.md again")

const pageIntro = `# Settings

<!-- written by: go test ./configs -run TestPage -update -->

Each setting is a key of the YAML file and an environment variable. Those with a flag are marked. A flag overrides the environment, which overrides the file. The broker refuses a
key, a variable or a value that it does not know, and names it. ` + "`broker --help` and `janitor --help`" + ` print the same.

In the file, a dot separates a section and a key: ` + "`limits.message` is `limits: {message: 65536}`" + `. Durations are like ` + "`30s` or `1h30m`" + `, lists like ` + "`[a, b]`" + `, in the
environment separated by commas. Start from [` + "`configs/development.yaml`](../configs/development.yaml), [`configs/production.yaml`](../configs/production.yaml), [`configs/cluster.yaml`](../configs/cluster.yaml)" + ` or
[` + "`configs/janitor.yaml`](../configs/janitor.yaml)" + `. [Reload](access.md#reload) says which settings a running broker reads again.
`

// TestPage checks that docs/config.md has all settings of both programs.
func TestPage(t *testing.T) {
	want := pageIntro + "\n## Broker\n" + brokerProgram.page() + "\n## Janitor\n" + janitorProgram.page()
	const path = "../docs/config.md"
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s is not that of these settings (%v): run go test ./configs -run TestPage -update", path, err)
	}
}

// page returns a table of each group.
func (p *program) page() string {
	var b strings.Builder
	title := ""
	cell := strings.NewReplacer("\n", " ", "|", `\|`, "{{", "`{{", "}}", "}}`", "<", `\<`)
	for _, s := range p.rows() {
		if s.group != title {
			title = s.group
			fmt.Fprintf(&b, "\n### %s: %s\n\n| setting | meaning | default |\n|---|---|---|\n", p.name, strings.ToLower(title[:1])+title[1:])
		}
		name := "`" + s.Key + "`"
		if s.Flag {
			name += ", `--" + s.FlagName() + "`"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name+"<br>`"+p.env(s.Key)+"`", cell.Replace(s.text), strings.TrimPrefix(cell.Replace(s.DefaultText()), "default "))
	}
	return b.String()
}
