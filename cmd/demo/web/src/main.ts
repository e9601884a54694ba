/** The demo: the login, the connection, and which page is shown. */
import { Switchboard, SwitchboardError } from "switchboard-client";
import { Accounts, Rooms, type Session } from "switchboard-client/kit";
import type { App, Page } from "./app.js";
import { hallPage } from "./hall.js";
import { lobbyPage } from "./lobby.js";
import { roomPage } from "./room.js";
import { squarePage } from "./square.js";
import { attempt, form, h, notify, show } from "./ui.js";

const page = document.getElementById("page")!;
const nav = document.getElementById("nav")!;
const me = document.getElementById("me")!;

// A tab is a user: two tabs can play against each other, and a reload keeps the login.
const accounts = new Accounts(location.origin, {
  onRenewal: (renewal) => (renewal ? sessionStorage.setItem("renewal", renewal) : sessionStorage.removeItem("renewal")),
});

async function begin(): Promise<void> {
  const renewal = sessionStorage.getItem("renewal");
  if (!renewal) return loginPage();
  try {
    await enter(await accounts.resume(renewal));
  } catch (error) {
    if ((error as SwitchboardError).code === "unauthorized") return loginPage(); // the login has ended
    notify("The demo cannot be reached. The page tries again.");
    setTimeout(() => void begin(), 2000);
  }
}

function loginPage(): void {
  const nickname = h("input", { name: "nickname", maxLength: 20, required: true, autocomplete: "nickname" });
  const name = h("input", { name: "name", autocomplete: "username", required: true });
  const password = h("input", { name: "password", type: "password", autocomplete: "current-password", required: true, minLength: 8 });
  const login = (start: () => Promise<Session>) => attempt(async () => enter(await start()), ({ code }) => ({
    unauthorized: "The name or the password is wrong.",
    conflict: "This name is taken.",
    rate_limited: "Too many attempts. Wait a moment.",
  })[code as string]);
  show(page, h("section", { className: "welcome" },
    h("h1", {}, "Play, sit, stroll."),
    h("p", { className: "lead" }, "A game for four, a hall with 120 seats, and a square to walk around. Everything is live for everybody who is here."),
    form("card", () => login(() => accounts.register({ nickname: nickname.value })),
      h("label", {}, "Your nickname", nickname),
      h("button", { className: "primary" }, "Come in as a guest")),
    h("details", { className: "card" },
      h("summary", {}, "With a name and a password"),
      form("", () => login(() => accounts.login({ name: name.value, password: password.value })),
        h("label", {}, "Name", name),
        h("label", {}, "Password", password),
        h("div", { className: "row" },
          h("button", { className: "primary" }, "Log in"),
          h("button", { type: "button", onclick: () => login(() => accounts.register({ name: name.value, password: password.value, nickname: name.value })) }, "Register"))))));
  nickname.focus();
}

async function enter(session: Session): Promise<void> {
  const { account } = session;
  const sb = new Switchboard(location.origin.replace(/^http/, "ws") + "/ws", { token: () => session.token(), storage: sessionStorage });
  const nickname = account.nickname ?? account.name ?? "Guest";
  const chat: App["chat"] = sb.channel("chat", { after: 0, state: true, presence: true }); // from the first stored message on
  const app: App = { sb, session, user: account.id, nickname, chat, messages: [] };
  chat.on("message", (text, { by }) => void app.messages.push({ author: by?.split("/")[0] ?? "", text })); // a client id begins with its user
  const light = h("span", { className: "light" });
  sb.on("connected", () => (light.className = "light on"));
  sb.on("disconnected", () => (light.className = "light"));
  sb.on("closed", ({ code }) => code !== "closed" && location.reload()); // the login has ended elsewhere
  show(me, light, h("span", { className: "nickname" }, nickname), h("button", { className: "quiet", onclick: () => void logout(app) }, "Log out"));
  await chat.set(app.user, nickname);
  await chat.state.ready();
  const mine = await new Rooms(sb).mine();
  const playing = mine.rooms.find(({ room, reserved }) => room.status !== "finished" && !reserved);
  if (playing && !location.hash.startsWith("#/room/")) location.hash = `#/room/${playing.id}`; // the seat is still there
  window.addEventListener("hashchange", () => void route(app));
  await route(app);
}

async function logout(app: App): Promise<void> {
  await attempt(async () => {
    await app.room?.leave();
    await app.sb.close();
    await app.session.logout();
    location.hash = "";
    location.reload();
  });
}

let shown: Page | undefined;
let opening = 0;

/** route shows the page of the address. */
async function route(app: App): Promise<void> {
  const [, name = "", id = ""] = location.hash.split("/");
  const attempts = ++opening;
  shown?.close();
  shown = undefined;
  await attempt(async () => {
    const next = await open(app, name, decodeURIComponent(id));
    if (attempts !== opening) return next.close(); // another page was chosen meanwhile
    shown = next;
    document.title = `${next.title} · Switchboard demo`;
    show(page, next.element);
  });
  if (!shown && name && attempts === opening) location.hash = "#/"; // the room has ended, or is full
  const links = [["#/", "Lobby"], app.room && [`#/room/${app.room.id}`, "Game"], ["#/hall", "Hall"], ["#/square", "Square"]];
  show(nav, ...links.filter((link) => link !== undefined).map(([href, text]) => (
    h("a", { href: href!, "aria-current": (location.hash || "#/") === href ? "page" : undefined }, text!))));
}

function open(app: App, name: string, id: string): Page | Promise<Page> {
  switch (name) {
    case "room": return roomPage(app, id);
    case "hall": return hallPage(app);
    case "square": return squarePage(app);
    default: return lobbyPage(app);
  }
}

void begin();
