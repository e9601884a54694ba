// Builds dist, or the directory that is given as the argument: ESM, CommonJS and types of each entry.
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
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
    await build({
      absWorkingDir: root,
      entryPoints: [`src/${entry}.ts`],
      outfile: join(out, `${entry}.${extension}`),
      bundle: true,
      minify: true,
      mangleProps: /^_./, // the members that the types do not show
      format,
      platform,
      target: "es2021",
      logLevel: "warning",
      plugins: [sharedErrors(entry, extension)],
    });
  }
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
