// Builds dist, or the directory that is given as the argument: ESM, CommonJS and types of each entry.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { build } from "esbuild";
import { buildTypes, entries, replace, root } from "./types.mjs";

const dist = resolve(process.argv[2] ?? join(root, "dist"));
const out = mkdtempSync(join(tmpdir(), "switchboard-client-"));

/** The errors of all entries are those of the client, so that `instanceof` holds. */
const sharedErrors = (entry, extension) => ({
  name: "shared errors",
  setup(build) {
    if (entry === "index") return;
    build.onResolve({ filter: /^\.\.?\/errors\.js$/ }, () => ({ path: `../index.${extension}`, external: true }));
  },
});

for (const [entry, platform] of Object.entries(entries)) {
  for (const [format, extension] of [
    ["esm", "js"],
    ["cjs", "cjs"],
  ]) {
    const outfile = join(out, `${entry}.${extension}`);
    const { metafile } = await build({
      absWorkingDir: root,
      entryPoints: [`src/${entry}.ts`],
      outfile,
      bundle: true,
      // Not minified: the stacks of an application show names, and its bundler minifies.
      sourcemap: true,
      sourcesContent: false, // src is in the package
      format,
      platform,
      target: "es2021",
      metafile: true,
      logLevel: "warning",
      plugins: [sharedErrors(entry, extension)],
    });
    relocate(`${outfile}.map`);
    if (format === "esm") writeNode(entry, Object.values(metafile.outputs).find((o) => o.entryPoint).exports);
  }
}

/** Makes the sources of a map those of the package, wherever it is built. */
function relocate(map) {
  const content = JSON.parse(readFileSync(map, "utf8"));
  const here = dirname(join(root, "dist", relative(out, map)));
  content.sources = content.sources.map((source) => relative(here, resolve(dirname(map), source)));
  writeFileSync(map, `${JSON.stringify(content)}\n`);
}

/**
 * Writes the ESM entry for Node, which imports the CommonJS one: an application whose packages use
 * both has each class once.
 */
function writeNode(entry, names) {
  const name = `./${entry.split("/").at(-1)}.cjs`;
  writeFileSync(
    join(out, entry.replace(/index$/, "node.js")),
    `import all from "${name}";\nexport const { ${names.sort().join(", ")} } = all;\n`,
  );
}

buildTypes(out);
replace(dist, out, (name) => !/\.new\d+$/.test(name)); // not what another process writes
rmSync(out, { recursive: true });
