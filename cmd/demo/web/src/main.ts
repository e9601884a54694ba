/** The demo: the connection, and which page is shown. */
import { Switchboard, type SwitchboardError } from "switchboard-client";
import { Rooms, type Session } from "switchboard-client/kit";
import type { App, Page } from "./app.js";
import { hallPage } from "./hall.js";
import { lobbyPage } from "./lobby.js";
import { login, resume } from "./login.js";
import { roomPage } from "./room.js";
import { squarePage } from "./square.js";
import { attempt, button, find, h, notify, show } from "./ui.js";

const page = find(document, "#page");

async function begin(): Promise<void> {
  let session: Session | undefined;
  try {
    session = await resume();
  } catch (error) {
    if ((error as SwitchboardError).code !== "unauthorized") {
      notify("The demo cannot be reached. The page tries again.");
      return void setTimeout(begin, 2000);
    } // else the login has ended
  }
  const app = connect(session ?? (await login(page)));
  await app.chat.set(app.user, app.nickname);
  await app.chat.state.ready();
  await comeBack(app);
  window.addEventListener("hashchange", () => void route(app));
  await route(app);
}

function connect(session: Session): App {
  const { id, name, nickname = name ?? "Guest" } = session.account;
  const sb = new Switchboard(`${location.origin}/ws`, { token: () => session.token(), storage: sessionStorage });
  // From the first stored message on, with the nicknames and the users that are online.
  const chat: App["chat"] = sb.channel("chat", { after: 0, state: true, presence: true });
  const app: App = { sb, user: id, nickname, chat, messages: [] };
  chat.on("message", (text, { by = "" }) => void app.messages.push({ author: by.split("/")[0]!, text })); // USER/DEVICE

  const light = h("span", { class: "light" });
  sb.on("connected", () => (light.className = "light on"));
  sb.on("disconnected", () => (light.className = "light"));
  sb.on("closed", ({ code }) => code !== "closed" && location.reload()); // the login was ended elsewhere
  const logout = async () => {
    await app.room?.leave();
    await sb.close();
    await session.logout();
    location.assign("/");
  };
  show(
    find(document, "#me"),
    light,
    h("span", { class: "nickname" }, nickname),
    button("logout", "Log out", "quiet", logout),
  );
  return app;
}

/** comeBack leads to the room in which this user still has a seat. */
async function comeBack(app: App): Promise<void> {
  const { rooms } = await new Rooms(app.sb).mine();
  const playing = rooms.find(({ room, reserved }) => room.status !== "finished" && !reserved);
  if (playing) location.hash = `#/room/${playing.id}`;
}

let shown: Page | undefined;
let routes = 0; // how many pages were opened

/** route shows the page of the address. */
async function route(app: App): Promise<void> {
  const [, name = "", id = ""] = location.hash.split("/");
  const n = ++routes;
  shown?.close();
  shown = undefined;
  await attempt(async () => {
    const next = await open(app, name, decodeURIComponent(id));
    if (n !== routes) return next.close(); // another page was chosen meanwhile
    shown = next;
    document.title = `${next.title} · Switchboard demo`;
    show(page, next.element);
  });
  if (n !== routes) return;
  if (!shown && name) location.hash = "#/"; // the room has ended, or is full
  const game = app.room ? { [`#/room/${app.room.id}`]: "Game" } : {};
  const links = Object.entries({ "#/": "Lobby", ...game, "#/hall": "Hall", "#/square": "Square" });
  const here = location.hash || "#/";
  const link = ([href, text]: string[]) => h("a", { href, "aria-current": href === here ? "page" : undefined }, text);
  show(find(document, "#nav"), ...links.map(link));
}

const pages: Record<string, (app: App, id: string) => Page | Promise<Page>> = {
  room: roomPage,
  hall: hallPage,
  square: squarePage,
};

const open = (app: App, name: string, id: string) => (pages[name] ?? lobbyPage)(app, id);

void begin();
