// Builds dist, or the directory that is given as the argument: ESM, CommonJS and types of each entry.
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = fileURLToPath(new URL(".", import.meta.url));
const out = resolve(process.argv[2] ?? join(root, "dist"));

/** The entries of package.json, by their path in src and dist. */
const entries = { index: "neutral", "kit/index": "neutral", "server/index": "node" };

rmSync(out, { recursive: true, force: true });
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

execFileSync(process.execPath, [join(root, "node_modules/typescript/lib/tsc.js"), "-p", root, "--outDir", out], {
  stdio: "inherit",
});

// The types show no internals: no private members, and no modules that only these use.
const privateMember = /(?:^ *\/\*\*(?:(?!\*\/)[^])*\*\/\n)?^ *private [^;\n]*;\n/gm;
const reached = new Set();
const reach = (file) => {
  if (reached.has(file)) return;
  reached.add(file);
  const text = readFileSync(file, "utf8").replace(privateMember, "");
  writeFileSync(file, text);
  for (const [, path] of text.matchAll(/from "(\..*)\.js"/g)) reach(resolve(dirname(file), `${path}.d.ts`));
};
for (const entry of Object.keys(entries)) reach(join(out, `${entry}.d.ts`));
for (const file of readdirSync(out, { recursive: true })) {
  if (file.endsWith(".d.ts") && !reached.has(join(out, file))) rmSync(join(out, file));
}

// CommonJS needs types of its own: those of a module of type "module" are ESM.
for (const file of readdirSync(out, { recursive: true })) {
  if (!file.endsWith(".d.ts")) continue;
  const text = readFileSync(join(out, file), "utf8");
  writeFileSync(
    join(out, file.replace(/\.ts$/, ".cts")),
    text.replace(/((?:from|import\() ?"\.[^"]*)\.js"/g, '$1.cjs"'),
  );
}
