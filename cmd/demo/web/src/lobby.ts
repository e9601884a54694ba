/** The lobby: rooms that can be joined, the leaderboard, and a chat. */
import { Boards, Rooms, type RoomCard } from "switchboard-client/kit";
import { Cleanup, nameOf, type App, type Page } from "./app.js";
import { attempt, form, h, show } from "./ui.js";

export function lobbyPage(app: App): Page {
  const cleanup = new Cleanup();
  return {
    title: "Lobby",
    element: h("div", { className: "lobby" }, roomsCard(app, cleanup), boardCard(app, cleanup), chatCard(app, cleanup)),
    close: () => cleanup.run(),
  };
}

function roomsCard(app: App, cleanup: Cleanup): HTMLElement {
  const rooms = new Rooms(app.sb);
  const lobby = rooms.lobby("dots");
  const list = h("ul", { className: "list" });
  const row = (card: RoomCard) => h("li", {},
    h("span", { className: "grow" }, h("b", {}, card.room.name ?? card.id), h("small", {}, `${card.room.data.size} × ${card.room.data.size} boxes`)),
    h("span", { className: "pips", title: `${card.members} of ${card.room.capacity} players` },
      ...Array.from({ length: card.room.capacity }, (_, i) => h("i", { className: i < card.members ? "taken" : "" }))),
    h("a", { className: "button", id: `join-${card.id}`, href: `#/room/${encodeURIComponent(card.id)}` }, "Join"));
  const draw = () => show(list, ...(lobby.rooms.length ? lobby.rooms.map(row) : [h("li", { className: "empty" }, "No room is open. Make the first one.")]));
  cleanup.add(lobby.on("change", draw), () => lobby.close());
  draw();

  const name = h("input", { value: `${app.nickname}’s table`, maxLength: 40, required: true, "aria-label": "Name of the room" });
  const size = h("select", { "aria-label": "Size" }, ...[2, 3, 4].map((n) => h("option", { value: String(n), selected: n === 3 }, `${n} × ${n}`)));
  const create = () => attempt(async () => {
    app.room = await rooms.create({ mode: "dots", name: name.value, nickname: app.nickname, data: { size: Number(size.value) } });
    location.hash = `#/room/${app.room.id}`;
  });
  return h("section", { className: "card rooms" },
    h("h2", {}, "Dots and boxes"),
    h("p", {}, "Two to four players draw lines in turn. Close a box: it is yours, and you draw again."),
    list,
    form("row", create, name, size, h("button", { className: "primary" }, "Make a room")));
}

function boardCard(app: App, cleanup: Cleanup): HTMLElement {
  const board = new Boards(app.sb).follow("dots");
  const list = h("ol", { className: "list board" });
  const draw = () => show(list, ...(board.entries.length
    ? board.entries.map(({ rank, player, score }) => h("li", { className: player === app.user ? "mine" : "" },
      h("span", { className: "rank" }, rank), h("span", { className: "grow" }, nameOf(app, player)), h("b", {}, score)))
    : [h("li", { className: "empty" }, "Boxes of finished games count here.")]));
  cleanup.add(board.on("change", draw), app.chat.state.on("change", draw), () => board.close());
  draw();
  return h("section", { className: "card" }, h("h2", {}, "Most boxes"), list);
}

function chatCard(app: App, cleanup: Cleanup): HTMLElement {
  const log = h("div", { className: "log", role: "log", tabIndex: 0, "aria-label": "Chat" });
  const count = h("small");
  const draw = () => {
    show(log, ...app.messages.map(({ author, text }) => (
      h("p", { className: author === app.user ? "mine" : "" }, h("b", {}, nameOf(app, author)), " ", text))));
    log.scrollTop = log.scrollHeight;
  };
  const drawCount = () => {
    const users = new Set([...app.chat.members].map(({ user }) => user!));
    count.textContent = `${users.size} here`;
    count.title = [...users].map((user) => nameOf(app, user)).join(", ");
  };
  cleanup.add(app.chat.on("message", draw), app.chat.state.on("change", draw), app.chat.members.on("change", drawCount));
  draw();
  drawCount();
  const text = h("input", { maxLength: 200, placeholder: "Say something", "aria-label": "Message", autocomplete: "off" });
  const send = () => attempt(async () => {
    const message = text.value.trim();
    if (!message) return;
    text.value = "";
    // A message with a change names its client, and this change only the user can make.
    await app.chat.update({ data: message, touch: [app.user] });
  }, ({ code }) => (code === "rate_limited" ? "Slowly: at most five messages a second." : undefined));
  return h("section", { className: "card chat" },
    h("h2", {}, "Chat", count), log,
    form("row", send, text, h("button", {}, "Send")));
}
