// Builds the page: node build.mjs FOLDER [--watch]. The result depends on the sources and on the
// versions in package-lock.json only, so a test can compare it with the committed files.
import { build, context } from "esbuild";
import { copyFile, mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [out, watch] = process.argv.slice(2);
if (!out) throw new Error("usage: node build.mjs FOLDER [--watch]");
const source = join(dirname(fileURLToPath(import.meta.url)), "src");

/** The demo serves the client as it is built in client/js/dist. */
const client = {
  name: "client",
  setup: (b) =>
    b.onResolve({ filter: /^switchboard-client/ }, ({ path }) => ({
      path: `${path.replace("switchboard-client", "/sdk")}/index.js`,
      external: true,
    })),
};

const options = {
  entryPoints: { demo: join(source, "main.ts"), style: join(source, "style.css") },
  outdir: out,
  bundle: true,
  minify: true,
  format: "esm",
  target: ["chrome123", "firefox128", "safari17.5"], // the first ones with light-dark() in CSS
  external: ["/square.svg"],
  plugins: [client],
  logLevel: "warning",
};

await mkdir(out, { recursive: true });
for (const name of ["index.html", "icon.svg", "square.svg"]) await copyFile(join(source, name), join(out, name));
if (watch) await (await context(options)).watch();
else await build(options);
