// The colors: those of the system until a person chooses. The style sheet reads data-theme.
import { useEffect, useState } from "preact/hooks";

type Theme = "light" | "dark";

const storageName = "switchboard-theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const changed = new Event("themechange");

const chosen = (): Theme | undefined => {
  const stored = localStorage.getItem(storageName);
  return stored === "light" || stored === "dark" ? stored : undefined;
};

const current = (): Theme => chosen() ?? (system.matches ? "dark" : "light");

/** applyTheme shows the theme that was chosen before. */
export function applyTheme() {
  document.documentElement.dataset.theme = current();
  document.dispatchEvent(changed);
}

system.addEventListener("change", applyTheme);

/** useTheme returns the theme, and a function that switches to the other one. */
export function useTheme(): [Theme, () => void] {
  const [theme, setTheme] = useState(current);
  useEffect(() => {
    const follow = () => setTheme(current());
    document.addEventListener("themechange", follow);
    return () => document.removeEventListener("themechange", follow);
  }, []);
  const toggle = () => {
    const next: Theme = current() === "dark" ? "light" : "dark";
    if (next === (system.matches ? "dark" : "light")) localStorage.removeItem(storageName);
    else localStorage.setItem(storageName, next);
    applyTheme();
  };
  return [theme, toggle];
}
