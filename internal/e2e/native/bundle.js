// Bundles app.js for React Native into the file that is given as the argument, as an application of
// Android in production: with Metro, React Native's Babel preset and its conditions for the entries
// of packages. The compiler of React Native's Hermes must accept the bundle.
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import Metro from "metro";
import { FileStore } from "metro-cache";

const require = createRequire(import.meta.url);
const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(here, "../../..");
const sdk = join(root, "client/js");
const config = await Metro.loadConfig(
  {},
  {
    projectRoot: here,
    watchFolders: [sdk, join(root, "internal/e2e/js")],
    cacheStores: [new FileStore({ root: join(here, "node_modules/.cache/metro") })],
    reporter: { update() {} },
    maxWorkers: 1,
    resolver: {
      // Those of @react-native/metro-config.
      platforms: ["android", "ios"],
      resolverMainFields: ["react-native", "browser", "main"],
      unstable_conditionNames: ["react-native"],
      extraNodeModules: { "switchboard-client": sdk },
      nodeModulesPaths: [join(here, "node_modules")], // the runtime of Babel, for files outside
      useWatchman: false,
    },
    transformer: {
      babelTransformerPath: require.resolve("@react-native/metro-babel-transformer"),
      enableBabelRCLookup: false,
      getTransformOptions: async () => ({ transform: { inlineRequires: true } }),
    },
    serializer: {
      getPolyfills: () => [join(here, "environment.js"), ...require("@react-native/js-polyfills")()],
      getModulesRunBeforeMainModule: () => [],
    },
  },
);
const { code } = await Metro.runBuild(config, {
  entry: "app.js",
  platform: "android",
  dev: false,
  minify: false,
  unstable_transformProfile: "default", // the Hermes that can run here is older than that of React Native
});
const out = process.argv[2];
writeFileSync(out, code);
execFileSync(
  "node_modules/hermes-compiler/hermesc/linux64-bin/hermesc",
  ["-w", "-emit-binary", "-out", `${out}.hbc`, out],
  { cwd: here, stdio: "inherit" },
);
process.exit(); // Metro leaves a watcher
