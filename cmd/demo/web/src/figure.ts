/** Figures: how an avatar looks, and where it goes. */
import type { Placed } from "switchboard-client/kit";
import { attempt, h } from "./ui.js";

/** A place in percent of the square. */
export type Point = [x: number, y: number];

/** placeOf returns where an avatar is. A new one has a place that follows from its id, the same on all devices. */
export function placeOf(avatar: string, fields?: Placed["fields"]): Point {
  const hash = [...avatar].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 9973, 7);
  return (fields?.["position"] as Point | undefined) ?? [10 + (hash % 80), 25 + ((hash >> 3) % 60)];
}

/** Walk sends where the avatar goes. While one position is on its way, only the newest waits. */
export class Walk {
  private sending = false;

  constructor(
    public goal: Point,
    private readonly send: (to: Point) => Promise<void>,
  ) {}

  to([x, y]: Point): void {
    this.goal = [within(x, 4, 96), within(y, 20, 96)];
    if (!this.sending) void attempt(() => this.flush());
  }

  private async flush(): Promise<void> {
    this.sending = true;
    try {
      for (let sent: Point | undefined; sent !== this.goal;) await this.send((sent = this.goal));
    } finally {
      this.sending = false;
    }
  }
}

const within = (value: number, min: number, max: number) => Math.round(10 * Math.min(max, Math.max(min, value))) / 10;

/** Figure draws an avatar. */
export class Figure {
  readonly element: HTMLElement;
  private readonly bubble = h("span", { class: "bubble", "aria-live": "polite" });
  private place: Point | undefined;

  constructor({ name, figure = "plum" }: Placed, mine: boolean) {
    const className = `avatar ${figure} ${mine ? "mine" : ""}`;
    const body = h("i", { class: "body" });
    this.element = h(
      "div",
      { class: className, "data-name": name },
      this.bubble,
      body,
      h("span", { class: "name" }, name),
    );
  }

  update({ avatar, online, fields }: Placed, typing: boolean): void {
    this.walkTo(placeOf(avatar, fields));
    const said = fields?.["say"] as string | undefined;
    const text = !online ? "z z" : (said ?? (typing ? "…" : ""));
    if (this.bubble.textContent !== text) this.bubble.textContent = text;
    this.element.classList.toggle("asleep", !online);
    this.element.classList.toggle("typing", online && typing && !said);
  }

  private walkTo([x, y]: Point): void {
    const { style } = this.element;
    const [x0, y0] = this.place ?? [x, y];
    if (x !== x0 || y !== y0) style.transitionDuration = `${Math.min(1.5, 0.12 + Math.hypot(x - x0, y - y0) / 40)}s`;
    style.left = `${x}%`;
    style.top = `${y}%`;
    style.zIndex = String(Math.round(y)); // the nearest is in front
    this.place = [x, y];
  }
}
