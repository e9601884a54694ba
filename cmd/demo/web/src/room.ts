/** A room: the board, and the players. */
import { Rooms, type Player, type Room } from "switchboard-client/kit";
import { Cleanup, type App, type Page } from "./app.js";
import { current, draw, linesOf, type Fields } from "./game.js";
import { arrows, attempt, h, seconds, show, svg } from "./ui.js";
import type { Channel } from "switchboard-client";

const cell = 100; // the distance of two dots

export async function roomPage(app: App, id: string): Promise<Page> {
  if (app.room?.id !== id) {
    await app.room?.leave();
    app.room = undefined;
    app.room = await new Rooms(app.sb).join(id, { nickname: app.nickname }); // within the grace: the same number
  }
  const room = app.room;
  const cleanup = new Cleanup();
  const board = new Board(room, sizeOf(room), (line) => move(app, room, line));
  const players = h("ul", { className: "list players" });
  const state = h("p", { className: "turn", role: "status" });
  let settled = false;
  const update = () => {
    if (!room.document) return leave(app); // the room has ended, or this user was removed from it
    board.update();
    state.textContent = sentence(room, board);
    show(players, ...room.players.map((player) => playerRow(room, player, board)));
    if (board.complete && room.document.status !== "finished" && !settled) {
      settled = true; // the backend counts the boxes, once for each room
      void attempt(() => app.sb.request({ settle: room.id }));
    }
  };
  cleanup.add(room.on("change", update));
  cleanup.everySecond(() => room.document && show(players, ...room.players.map((player) => playerRow(room, player, board)))); // countdowns
  update();
  return {
    title: room.document?.name ?? "Game",
    element: h("div", { className: "room" },
      h("section", { className: "card" }, h("h1", {}, room.document?.name ?? room.id), state, board.element),
      h("section", { className: "card" },
        h("h2", {}, "Players"), players,
        h("p", {}, "Others join from the lobby, or with the address of this page."),
        h("button", { onclick: () => void attempt(async () => { await room.leave(); leave(app); }) }, "Leave the room"))),
    close: () => cleanup.run(), // the membership stays
  };
}

function leave(app: App): void {
  app.room = undefined;
  location.hash = "#/";
}

const sizeOf = (room: Room) => Number((room.document?.data as { size?: number } | undefined)?.size) || 3;
const numbers = (room: Room) => room.players.filter((player) => !player.reserved).map((player) => player.n);
const nickname = (room: Room, n: number) => room.players.find((player) => player.n === n)?.nickname ?? `Player ${n}`;

function move(app: App, room: Room, line: string): Promise<void> {
  const fields = room.channel as unknown as Channel<unknown, Fields>;
  return attempt(() => fields.transact((draft) => draw(draft, line, room.n, numbers(room))),
    ({ code }) => (app.sb.phase !== "connected" ? "The connection is lost. It returns by itself." : code === "conflict" ? "Another player was faster." : undefined));
}

function sentence(room: Room, board: Board): string {
  if (board.complete) {
    const most = Math.max(...numbers(room).map((n) => board.boxes(n)));
    const best = numbers(room).filter((n) => board.boxes(n) === most).map((n) => (n === room.n ? "you" : nickname(room, n)));
    return best.length > 1 ? `A draw: ${best.join(" and ")}.` : best[0] === "you" ? "You win!" : `${best[0]} wins.`;
  }
  if (numbers(room).length < 2) return "Waiting for a second player.";
  const turn = current(room.channel.state.get("g/turn") === undefined ? {} : { "g/turn": room.channel.state.get("g/turn") }, numbers(room))!;
  return turn === room.n ? "Your turn: draw a line." : `${nickname(room, turn)} draws.`;
}

function playerRow(room: Room, { n, nickname: name, away, until }: Player, board: Board): HTMLElement {
  return h("li", { className: away ? "away" : "" },
    h("i", { className: `dot player-${n % 6}` }),
    h("span", { className: "grow" }, h("b", {}, name ?? `Player ${n}`), n === room.n && h("small", {}, "you"), away && h("small", {}, `away, the seat is kept for ${seconds(until)} s`)),
    h("b", {}, board.boxes(n)));
}

/** Board draws the lines and boxes. Its elements stay, so that the focus does. */
class Board {
  readonly element: SVGElement;
  complete = false;
  private readonly lines = new Map<string, SVGElement>();
  private readonly squares = new Map<string, SVGElement>();

  constructor(private readonly room: Room, size: number, choose: (line: string) => void) {
    const side = size * cell;
    this.element = svg("svg", { viewBox: `-20 -20 ${side + 40} ${side + 40}`, class: "dots", role: "group", "aria-label": "Board" });
    for (let row = 0; row < size; row++) {
      for (let col = 0; col < size; col++) {
        const square = svg("rect", { x: col * cell + 6, y: row * cell + 6, width: cell - 12, height: cell - 12, rx: 14, class: "box" });
        this.squares.set(`${row}/${col}`, square);
        this.element.append(square);
      }
    }
    for (const line of linesOf(size)) {
      const [direction, row, col] = line.split("/") as [string, string, string];
      const [x, y] = [Number(col) * cell, Number(row) * cell];
      const [x2, y2] = direction === "h" ? [x + cell, y] : [x, y + cell];
      const group = svg("g", { class: "line", role: "button", tabindex: -1, "data-line": line },
        svg("polygon", { points: `${x},${y} ${(x + x2 + y2 - y) / 2},${(y + y2 - x2 + x) / 2} ${x2},${y2} ${(x + x2 - y2 + y) / 2},${(y + y2 + x2 - x) / 2}` }),
        svg("line", { x1: x, y1: y, x2, y2 }));
      group.addEventListener("click", () => choose(line));
      group.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") (event.preventDefault(), choose(line));
      });
      this.lines.set(line, group);
      this.element.append(group);
    }
    for (let i = 0; i <= size; i++) for (let j = 0; j <= size; j++) this.element.append(svg("circle", { cx: i * cell, cy: j * cell, r: 8, class: "corner" }));
    this.lines.values().next().value!.setAttribute("tabindex", "0");
    arrows(this.element, ".line");
  }

  /** The boxes of a player. */
  boxes(n: number): number {
    return [...this.squares.keys()].filter((box) => this.room.channel.state.get(`g/box/${box}`) === n).length;
  }

  update(): void {
    const { state } = this.room.channel;
    for (const [line, element] of this.lines) {
      const player = state.get(`g/line/${line}`) as number | undefined;
      element.setAttribute("class", player === undefined ? "line" : `line drawn player-${player % 6}`);
      const [direction, row, col] = line.split("/");
      element.setAttribute("aria-label", `${direction === "h" ? "Horizontal" : "Vertical"} line, row ${Number(row) + 1}, column ${Number(col) + 1}${player === undefined ? "" : `, drawn by ${nickname(this.room, player)}`}`);
    }
    const owners = [...this.squares].map(([box, element]) => {
      const player = state.get(`g/box/${box}`) as number | undefined;
      element.setAttribute("class", player === undefined ? "box" : `box player-${player % 6}`);
      return player;
    });
    this.complete = owners.every((player) => player !== undefined);
  }
}
