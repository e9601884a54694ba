/** The lobby: rooms that can be joined, the leaderboard, and a chat. */
import { Boards, Rooms, type BoardEntry, type RoomCard } from "switchboard-client/kit";
import { Cleanup, nameOf, type App, type Page } from "./app.js";
import { clone, find, h, onSubmit, show } from "./ui.js";

export function lobbyPage(app: App): Page {
  const element = clone("lobby");
  const cleanup = new Cleanup();
  fillRooms(app, find(element, ".rooms"), cleanup);
  fillBoard(app, find(element, ".board"), cleanup);
  fillChat(app, find(element, ".chat"), cleanup);
  return { title: "Lobby", element, close: () => cleanup.run() };
}

const empty = (text: string) => h("li", { class: "empty" }, text);

function fillRooms(app: App, card: HTMLElement, cleanup: Cleanup): void {
  const rooms = new Rooms(app.sb);
  const lobby = rooms.lobby("dots");
  const draw = () => {
    const rows = lobby.rooms.map(roomRow);
    show(find(card, ".list"), ...(rows.length ? rows : [empty("No room is open. Make the first one.")]));
  };
  cleanup.add(lobby.on("change", draw), () => lobby.close());
  draw();

  find<HTMLInputElement>(card, "[name=name]").value = `${app.nickname}’s table`;
  onSubmit(find(card, "form"), async ({ name, size }) => {
    await app.room?.leave();
    app.room = await rooms.create({ mode: "dots", name: name!, nickname: app.nickname, data: { size: Number(size) } });
    location.hash = `#/room/${app.room.id}`;
  });
}

function roomRow({ id, room, members }: RoomCard): HTMLElement {
  const { size } = room.data as { size: number };
  const pips = Array.from({ length: room.capacity }, (_, i) => h("i", { class: i < members ? "taken" : "" }));
  return h(
    "li",
    {},
    h("span", { class: "grow" }, h("b", {}, room.name ?? id), h("small", {}, `${size} × ${size} boxes`)),
    h("span", { class: "pips", title: `${members} of ${room.capacity} players` }, ...pips),
    h("a", { class: "button", id: `join-${id}`, href: `#/room/${encodeURIComponent(id)}` }, "Join"),
  );
}

function fillBoard(app: App, list: HTMLElement, cleanup: Cleanup): void {
  const board = new Boards(app.sb).follow("dots");
  const row = ({ rank, player, score }: BoardEntry) =>
    h(
      "li",
      { class: player === app.user ? "mine" : "" },
      h("span", { class: "rank" }, rank),
      h("span", { class: "grow" }, nameOf(app, player)),
      h("b", {}, score),
    );
  const draw = () => {
    const rows = board.entries.map(row);
    show(list, ...(rows.length ? rows : [empty("Boxes of finished games count here.")]));
  };
  cleanup.add(board.on("change", draw), app.chat.state.on("change", draw), () => board.close());
  draw();
}

function fillChat(app: App, card: HTMLElement, cleanup: Cleanup): void {
  const { chat } = app;
  const log = find(card, ".log");
  const drawLog = () => {
    const rows = app.messages.map(({ author, text }) =>
      h("p", { class: author === app.user ? "mine" : "" }, h("b", {}, nameOf(app, author)), " ", text),
    );
    show(log, ...rows);
    log.scrollTop = log.scrollHeight;
  };
  const drawCount = () => {
    const users = new Set([...chat.members].map(({ user }) => user!));
    show(find(card, ".count"), `${users.size} here`);
    find(card, ".count").title = [...users].map((user) => nameOf(app, user)).join(", ");
  };
  cleanup.add(chat.on("message", drawLog), chat.state.on("change", drawLog), chat.members.on("change", drawCount));
  drawLog();
  drawCount();

  const form = find<HTMLFormElement>(card, "form");
  onSubmit(form, async ({ text }) => {
    form.reset();
    // A message that changes a field names its client. Only this user can touch this field.
    if (text?.trim()) await chat.update({ data: text.trim(), touch: [app.user] });
  });
}
