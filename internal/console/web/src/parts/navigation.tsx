import { useEffect, useState } from "preact/hooks";
import { link } from "../router";
import { useSession } from "../session";
import type { Scope, System } from "../types";
import { useTheme } from "../theme";
import { Icon, Mark } from "./icons";

interface Item {
  page: string;
  label: string;
  /** A key with one of the scopes sees the item. */
  scopes: Scope[];
  system?: System;
}

const items: Item[] = [
  { page: "overview", label: "Overview", scopes: ["read"] },
  { page: "channels", label: "Channels", scopes: ["read"] },
  { page: "users", label: "Users", scopes: ["read"] },
  { page: "webhooks", label: "Webhooks", scopes: ["read"] },
  { page: "access", label: "Access check", scopes: ["read"] },
  { page: "start", label: "First push", scopes: ["read", "push"] },
  { page: "rooms", label: "Rooms", scopes: ["read"], system: "rooms" },
  { page: "holds", label: "Holds", scopes: ["read"], system: "holds" },
  { page: "boards", label: "Boards", scopes: ["read"], system: "boards" },
  { page: "accounts", label: "Accounts", scopes: ["admin"], system: "accounts" },
  { page: "scenes", label: "Scenes", scopes: ["read"], system: "scenes" },
];

// Pages that have no item of their own.
const parents = new Map([
  ["", "overview"],
  ["clients", "users"],
]);

export function Navigation({ current, leave }: { current: string; leave: () => void }) {
  const { self, may, has } = useSession();
  const [open, setOpen] = useState(false);
  const [theme, toggleTheme] = useTheme();
  useEffect(() => setOpen(false), [current]);
  const visible = items.filter((i) => i.scopes.some(may) && (!i.system || has(i.system)));
  const active = parents.get(current) ?? current;
  const entry = ({ page, label }: Item) => (
    <li key={page}>
      <a href={link(page)} aria-current={page === active ? "page" : undefined} onClick={() => setOpen(false)}>
        <Icon name={page} />
        {label}
      </a>
    </li>
  );
  const kit = visible.filter((i) => i.system);
  return (
    <div class={open ? "side open" : "side"} onKeyDown={(e) => e.key === "Escape" && setOpen(false)}>
      <div class="brand">
        <a href={link("overview")}>
          <Mark /> Switchboard
        </a>
        <button
          type="button"
          class="button quiet menu"
          aria-expanded={open}
          aria-controls="navigation"
          onClick={() => setOpen(!open)}
        >
          <Icon name="menu" /> Menu
        </button>
      </div>
      <div class="side-body" id="navigation">
        <nav aria-label="Main menu">
          <ul>{visible.filter((i) => !i.system).map(entry)}</ul>
          {kit.length > 0 && (
            <>
              <h2>Kit</h2>
              <ul>{kit.map(entry)}</ul>
            </>
          )}
        </nav>
        <footer>
          <p class="side-note">
            {self.open ? (
              self.tokens ? (
                "No API keys: this port is open"
              ) : (
                "Open broker, no keys"
              )
            ) : (
              <>
                Key <strong>{self.key.name || "without a name"}</strong>
                <br />
                {self.key.scopes.join(", ")}
              </>
            )}
          </p>
          <p class="side-note">
            {self.server}
            {self.version && (
              <>
                <br />
                {self.version}
              </>
            )}
          </p>
          <div class="side-actions">
            <button type="button" class="button quiet" onClick={toggleTheme}>
              <Icon name="theme" /> {theme === "dark" ? "Light" : "Dark"}
            </button>
            {!self.open && (
              <button type="button" class="button quiet" onClick={leave}>
                <Icon name="leave" /> Log out
              </button>
            )}
          </div>
        </footer>
      </div>
    </div>
  );
}
