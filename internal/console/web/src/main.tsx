import { render } from "preact";
import { App } from "./app";
import { applyTheme } from "./theme";

applyTheme();
const root = document.getElementById("console");
if (root) render(<App />, root);
