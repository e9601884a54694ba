/** The board: a drawing of the lines and boxes. */
import type { State } from "switchboard-client";
import { boxesOf, linesOf, type Fields } from "./game.js";
import { arrows, setAttributes, svg } from "./ui.js";

const cell = 100; // the distance of two dots

/** Board draws a game. Its elements stay, so that the focus does. */
export class Board {
  /** All boxes are closed. */
  complete = false;
  private readonly lines = new Map<string, SVGElement>();
  private readonly squares = new Map<string, SVGElement>();
  private owners: (number | undefined)[] = [];

  constructor(drawing: SVGElement, size: number, choose: (line: string) => void) {
    drawing.setAttribute("viewBox", `-20 -20 ${size * cell + 40} ${size * cell + 40}`);
    for (const box of boxesOf(size)) this.squares.set(box, square(box));
    for (const line of linesOf(size)) this.lines.set(line, stroke(line, choose));
    drawing.append(...this.squares.values(), ...this.lines.values());
    for (let x = 0; x <= size; x++)
      for (let y = 0; y <= size; y++)
        drawing.append(svg("circle", { cx: x * cell, cy: y * cell, r: 8, class: "corner" }));
    arrows(drawing, ".line");
  }

  /** Returns how many boxes a player has. */
  boxes(n: number): number {
    return this.owners.filter((owner) => owner === n).length;
  }

  update(fields: State<Fields>, nickname: (n: number) => string): void {
    for (const [line, element] of this.lines) {
      const player = fields.get(`g/line/${line}`);
      const [direction, row, col] = line.split("/");
      const place = `${direction === "h" ? "Horizontal" : "Vertical"} line, row ${Number(row) + 1}, column ${Number(col) + 1}`;
      setAttributes(element, {
        class: player === undefined ? "line" : `line drawn player-${player % 6}`,
        "aria-label": player === undefined ? place : `${place}, drawn by ${nickname(player)}`,
      });
    }
    this.owners = [...this.squares].map(([box, element]) => {
      const player = fields.get(`g/box/${box}`);
      element.setAttribute("class", player === undefined ? "box" : `box player-${player % 6}`);
      return player;
    });
    this.complete = !this.owners.includes(undefined);
  }
}

function square(box: string): SVGElement {
  const [row, col] = box.split("/").map(Number) as [number, number];
  return svg("rect", { x: col * cell + 6, y: row * cell + 6, width: cell - 12, height: cell - 12, rx: 14 });
}

/** stroke returns a line, with an area around it that is easy to hit. */
function stroke(line: string, choose: (line: string) => void): SVGElement {
  const [direction, row, col] = line.split("/");
  const [x, y, half] = [Number(col) * cell, Number(row) * cell, cell / 2];
  const along = direction === "h" ? [cell, 0] : [0, cell];
  const area =
    direction === "h"
      ? `l${half} -${half} ${half} ${half} -${half} ${half}z`
      : `l-${half} ${half} ${half} ${half} ${half} -${half}z`;
  const group = svg(
    "g",
    { class: "line", role: "button", "data-line": line },
    svg("path", { d: `M${x} ${y}${area}` }),
    svg("line", { x1: x, y1: y, x2: x + along[0]!, y2: y + along[1]! }),
  );
  group.addEventListener("click", () => choose(line));
  group.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    choose(line);
  });
  return group;
}
