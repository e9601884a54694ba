/** A room: the players, and how the game stands. */
import type { Channel } from "switchboard-client";
import { Rooms, type Player, type Room } from "switchboard-client/kit";
import { Cleanup, type App, type Page } from "./app.js";
import { Board } from "./board.js";
import { current, draw, type Fields } from "./game.js";
import { attempt, clone, find, h, onClick, seconds, show } from "./ui.js";

export async function roomPage(app: App, id: string): Promise<Page> {
  if (app.room?.id !== id) {
    await app.room?.leave();
    app.room = undefined;
    app.room = await new Rooms(app.sb).join(id, { nickname: app.nickname }); // within the grace: the same seat
  }
  const table = new Table(app, app.room);
  return { title: table.name, element: table.element, close: () => table.close() };
}

/** Table shows a room. */
class Table {
  readonly element = clone("room");
  readonly name: string;
  private readonly fields: Channel<unknown, Fields>;
  private readonly board: Board;
  private readonly cleanup = new Cleanup();
  private settled = false;

  constructor(
    private readonly app: App,
    private readonly room: Room,
  ) {
    this.fields = room.channel as unknown as Channel<unknown, Fields>;
    this.name = room.document?.name ?? room.id;
    const { size = 3 } = (room.document?.data ?? {}) as { size?: number };
    this.board = new Board(find(this.element, "svg"), size, (line) => this.move(line));
    show(find(this.element, "h1"), this.name);
    onClick(find(this.element, ".leave"), async () => {
      await room.leave();
      this.left();
    });
    this.cleanup.add(
      room.on("change", () => this.update()),
      room.channel.on("unsubscribed", () => this.left()),
    );
    this.cleanup.everySecond(() => this.drawPlayers()); // the countdowns
    this.update();
  }

  /** Ends the view. The membership stays. */
  close(): void {
    this.cleanup.run();
  }

  /** The room has ended, or this user is not a member any more. */
  private left(): void {
    this.app.room = undefined;
    location.hash = "#/";
  }

  /** The numbers of the players. */
  private get players(): number[] {
    return this.room.players.map((player) => player.n);
  }

  private move(line: string): Promise<void> {
    return attempt(() => this.fields.transact((fields) => draw(fields, line, this.room.n, this.players)));
  }

  private update(): void {
    const { app, room, board } = this;
    if (!this.players.includes(room.n)) return this.left();
    board.update(this.fields.state, (n) => this.nickname(n));
    show(find(this.element, ".turn"), this.sentence());
    this.drawPlayers();
    if (board.complete && !this.settled) {
      this.settled = true; // the backend counts the boxes, once for each room
      void attempt(() => app.sb.request({ settle: room.id }));
    }
  }

  private nickname(n: number): string {
    return this.room.players.find((player) => player.n === n)?.nickname ?? `Player ${n}`;
  }

  private sentence(): string {
    const { room, board, players } = this;
    if (board.complete) {
      const most = Math.max(...players.map((n) => board.boxes(n)));
      const best = players.filter((n) => board.boxes(n) === most);
      if (best.length > 1) return `A draw: ${best.map((n) => this.nickname(n)).join(" and ")}.`;
      return best[0] === room.n ? "You win!" : `${this.nickname(best[0]!)} wins.`;
    }
    if (players.length < 2) return "Waiting for a second player.";
    const turn = current(this.fields.state.get("g/turn"), players)!;
    return turn === room.n ? "Your turn: draw a line." : `${this.nickname(turn)} draws.`;
  }

  private drawPlayers(): void {
    show(find(this.element, ".players"), ...this.room.players.map((player) => this.row(player)));
  }

  private row({ n, away, until }: Player): HTMLElement {
    return h(
      "li",
      { class: away ? "away" : "" },
      h("i", { class: `dot player-${n % 6}` }),
      h(
        "span",
        { class: "grow" },
        h("b", {}, this.nickname(n)),
        n === this.room.n && h("small", {}, "you"),
        away && h("small", {}, `away, the seat is kept for ${seconds(until)} s`),
      ),
      h("b", {}, this.board.boxes(n)),
    );
  }
}
