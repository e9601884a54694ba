/** The square: avatars that walk, talk and show that they type. */
import { Scenes, type Avatar, type Placed } from "switchboard-client/kit";
import { Cleanup, type App, type Page } from "./app.js";
import { attempt, form, h } from "./ui.js";

const square = "square";
const figures = ["plum", "mint", "sun", "coral", "sky", "rose"];

type Point = [x: number, y: number]; // in percent of the square

export async function squarePage(app: App): Promise<Page> {
  const cleanup = new Cleanup();
  const scenes = new Scenes(app.sb);
  const avatar = (await scenes.avatars()).avatars[0] ?? (await newAvatar(app, scenes));
  const scene = await scenes.transfer(avatar.id, square);
  scene.channel.members; // adds the presence, which carries the typing
  const walk = new Walk(scene.avatars.find((a) => a.avatar === avatar.id)?.fields["position"] as Point | undefined ?? start(avatar.id), (to) => scene.set("position", to));

  const ground = h("div", { className: "ground", tabIndex: 0, role: "application", "aria-label": "The square. Walk with the arrow keys." });
  const figuresShown = new Map<string, Figure>();
  const draw = () => {
    const typing = new Set([...scene.channel.members].map((m) => (m.here as { typing?: string } | undefined)?.typing));
    const here = scene.avatars;
    for (const placed of here) {
      let figure = figuresShown.get(placed.avatar);
      if (!figure) figuresShown.set(placed.avatar, (figure = new Figure(ground, placed, placed.avatar === avatar.id)));
      figure.update(placed, typing.has(placed.avatar));
    }
    for (const [id, figure] of figuresShown) {
      if (here.some((placed) => placed.avatar === id)) continue;
      figure.element.remove();
      figuresShown.delete(id);
    }
  };
  cleanup.add(scene.on("change", draw), scene.channel.members.on("change", draw), () => scene.close());
  draw();

  ground.addEventListener("pointerdown", (event) => {
    const area = ground.getBoundingClientRect();
    walk.to([(100 * (event.clientX - area.left)) / area.width, (100 * (event.clientY - area.top)) / area.height]);
  });
  ground.addEventListener("keydown", (event) => {
    const [dx, dy] = { ArrowLeft: [-4, 0], ArrowRight: [4, 0], ArrowUp: [0, -6], ArrowDown: [0, 6] }[event.key] ?? [0, 0];
    if (!dx && !dy) return;
    event.preventDefault();
    walk.to([walk.wanted[0] + dx!, walk.wanted[1] + dy!]);
  });

  const text = h("input", {
    maxLength: 80, placeholder: "Say something", "aria-label": "Say something", autocomplete: "off",
    oninput: () => scene.channel.here(text.value ? { typing: avatar.id } : null),
    onblur: () => scene.channel.here(null),
  });
  const say = () => attempt(async () => {
    const words = text.value.trim();
    text.value = "";
    scene.channel.here(null);
    // The broker removes the field after some seconds, for everybody at the same time.
    if (words) await scene.channel.set(`a/${avatar.id}/say`, words, { ttl: 7 });
  });
  return {
    title: "Square",
    element: h("div", { className: "square" }, h("section", { className: "card" },
      h("h1", {}, "The square"), h("p", {}, "Click where you want to go, or use the arrow keys."), ground,
      form("row", say, text, h("button", { className: "primary" }, "Say")))),
    close: () => cleanup.run(),
  };
}

function newAvatar(app: App, scenes: Scenes): Promise<Avatar> {
  return scenes.createAvatar({ name: app.nickname, figure: figures[Math.floor(Math.random() * figures.length)]! });
}

/** A place to begin that is the same on all devices: it follows from the id. */
function start(id: string): Point {
  const sum = [...id].reduce((all, letter) => (all * 31 + letter.charCodeAt(0)) % 9973, 7);
  return [10 + (sum % 80), 25 + ((sum >> 3) % 60)];
}

/** Walk sends where the avatar goes. While one position is on its way, only the newest waits. */
class Walk {
  private sending = false;

  constructor(public wanted: Point, private readonly send: (to: Point) => Promise<void>) {}

  to([x, y]: Point): void {
    this.wanted = [Math.round(Math.min(96, Math.max(4, x)) * 10) / 10, Math.round(Math.min(96, Math.max(20, y)) * 10) / 10];
    if (!this.sending) void attempt(() => this.flush());
  }

  private async flush(): Promise<void> {
    this.sending = true;
    try {
      for (let sent: Point | undefined; sent !== this.wanted; ) await this.send((sent = this.wanted));
    } finally {
      this.sending = false;
    }
  }
}

/** Figure draws an avatar. */
class Figure {
  readonly element: HTMLElement;
  private readonly bubble = h("span", { className: "bubble", "aria-live": "polite" });
  private at: Point | undefined;

  constructor(ground: HTMLElement, { avatar, name, figure }: Placed, mine: boolean) {
    this.element = h("div", { className: `avatar ${figure ?? "plum"}${mine ? " mine" : ""}`, "data-avatar": avatar, "data-name": name },
      this.bubble, h("i", { className: "body" }), h("span", { className: "name" }, name));
    ground.append(this.element);
  }

  update({ avatar, online, fields }: Placed, typing: boolean): void {
    const [x, y] = (fields["position"] as Point | undefined) ?? start(avatar);
    const { style, classList } = this.element;
    if (this.at) style.transitionDuration = `${Math.min(1.5, 0.12 + Math.hypot(x - this.at[0], y - this.at[1]) / 40)}s`; // the same speed for all
    style.left = `${x}%`;
    style.top = `${y}%`;
    style.zIndex = String(Math.round(y)); // the nearest is in front
    this.at = [x, y];
    classList.toggle("asleep", !online);
    const said = online ? (fields["say"] as string | undefined) : undefined;
    classList.toggle("typing", typing && !said);
    const shown = said ?? (typing ? "…" : online ? "" : "z z");
    if (this.bubble.textContent !== shown) this.bubble.textContent = shown;
  }
}
