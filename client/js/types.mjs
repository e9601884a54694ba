// Builds the declarations of the entries into dist, or the directory that is given as the argument.
// They are not committed: `make js`, `npm pack` and tests build them, also several of these at once.
import { execFileSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL(".", import.meta.url));

/** The entries of package.json, by their path in src and dist. */
export const entries = { index: "neutral", "kit/index": "neutral", "server/index": "node" };

/** Writes the declarations into an empty directory. */
export function buildTypes(out) {
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
}

/**
 * Replaces the files of dist whose names belong to a build by those of the directory out. It writes
 * only what differs, and each file at once, since others may read dist meanwhile.
 */
export function replace(dist, out, belongs) {
  const isFile = (path) => statSync(path, { throwIfNoEntry: false })?.isFile();
  const filesOf = (dir) => readdirSync(dir, { recursive: true }).filter((name) => isFile(join(dir, name)));
  const fresh = filesOf(out);
  for (const name of fresh) {
    const text = readFileSync(join(out, name));
    const path = join(dist, name);
    if (isFile(path) && readFileSync(path).equals(text)) continue;
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(`${path}.new${process.pid}`, text);
    renameSync(`${path}.new${process.pid}`, path);
  }
  for (const name of filesOf(dist)) {
    if (belongs(name) && !fresh.includes(name)) rmSync(join(dist, name), { force: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const out = mkdtempSync(join(tmpdir(), "switchboard-types-"));
  buildTypes(out);
  replace(resolve(process.argv[2] ?? join(root, "dist")), out, (name) => /\.d\.c?ts$/.test(name));
  rmSync(out, { recursive: true });
}
