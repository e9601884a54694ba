// The page of each address.
import type { ComponentChild } from "preact";
import { AccountPage } from "../kit/account";
import { Accounts } from "../kit/accounts";
import { BoardPage, Boards } from "../kit/boards";
import { HoldPage } from "../kit/hold";
import { Holds } from "../kit/holds";
import { RoomPage, Rooms } from "../kit/rooms";
import { ScenePage, Scenes } from "../kit/scenes";
import { Empty, Page } from "../parts/ui";
import { link } from "../router";
import type { Session } from "../session";
import type { Scope, System } from "../types";
import { Access } from "./access";
import { ChannelPage } from "./channel";
import { Channels } from "./channels";
import { ClientPage } from "./client";
import { Overview } from "./overview";
import { Start } from "./start";
import { UserPage } from "./user";
import { Users } from "./users";
import { WebhooksPage } from "./webhooks";

interface Entry {
  scope: Scope;
  system?: System;
  list: () => ComponentChild;
  one?: (name: string) => ComponentChild;
}

// A Map, because the name comes from the address: an object also has members such as constructor.
const entries = new Map<string, Entry>(
  Object.entries({
    overview: { scope: "read", list: () => <Overview /> },
    channels: { scope: "read", list: () => <Channels />, one: (name) => <ChannelPage key={name} name={name} /> },
    users: { scope: "read", list: () => <Users />, one: (name) => <UserPage key={name} name={name} /> },
    clients: { scope: "read", list: () => <Users />, one: (id) => <ClientPage key={id} id={id} /> },
    webhooks: { scope: "read", list: () => <WebhooksPage /> },
    access: { scope: "read", list: () => <Access /> },
    start: { scope: "push", list: () => <Start /> },
    rooms: { scope: "read", system: "rooms", list: () => <Rooms />, one: (id) => <RoomPage key={id} id={id} /> },
    holds: {
      scope: "read",
      system: "holds",
      list: () => <Holds />,
      one: (name) => <HoldPage key={name} name={name} />,
    },
    boards: {
      scope: "read",
      system: "boards",
      list: () => <Boards />,
      one: (name) => <BoardPage key={name} name={name} />,
    },
    accounts: {
      scope: "admin",
      system: "accounts",
      list: () => <Accounts />,
      one: (id) => <AccountPage key={id} id={id} />,
    },
    scenes: { scope: "read", system: "scenes", list: () => <Scenes />, one: (id) => <ScenePage key={id} id={id} /> },
  }),
);

/** pageOf returns the page of a route, or says why there is none. */
export function pageOf([name, id]: string[], session: Session): ComponentChild {
  const entry = entries.get(name || (session.may("read") ? "overview" : "start"));
  if (!entry || (entry.system && !session.has(entry.system))) {
    return (
      <Page title="Nothing here">
        <Empty title="This console has no such page.">
          <a class="button" href={link("overview")}>
            Go to the overview
          </a>
        </Empty>
      </Page>
    );
  }
  // The first push page also explains how to begin to a key that may only read.
  if (!session.may(entry.scope) && name !== "start") {
    return (
      <Page title="Not with this key">
        <Empty title={`This page needs a key with the scope ${entry.scope}.`}>
          The key of this session has: {session.self.key.scopes.join(", ") || "no scope"}. Log out, and log in with
          another one.
        </Empty>
      </Page>
    );
  }
  return id && entry.one ? entry.one(id) : entry.list();
}
