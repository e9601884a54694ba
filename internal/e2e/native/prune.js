// Removes what the test does not use: native sources of React Native, programs for other systems,
// and tools for developers. It halves the size of node_modules.
import { rmSync } from "node:fs";
import { join } from "node:path";

const unused = [
  ...[
    "ReactAndroid",
    "ReactApple",
    "ReactCommon",
    "ReactCxxPlatform",
    "React",
    "gradle",
    "scripts",
    "types_generated",
  ].map((dir) => `react-native/${dir}`),
  ...["osx-bin", "win64-bin", "linux64-bin/hdb", "linux64-bin/hbcdump", "linux64-bin/hermesc"].map(
    (path) => `hermes-engine-cli/${path}`,
  ),
  ...["osx-bin", "win64-bin"].map((dir) => `hermes-compiler/hermesc/${dir}`),
  "@react-native/debugger-frontend",
  "@react-native/gradle-plugin",
  "react-devtools-core",
  "fb-dotslash",
];
for (const path of unused) rmSync(join("node_modules", path), { recursive: true, force: true });
