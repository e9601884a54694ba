/** The square: avatars that walk, talk and show that they type. */
import { Scenes, type Avatar, type Placed, type Scene } from "switchboard-client/kit";
import { Cleanup, type App, type Page } from "./app.js";
import { Figure, placeOf, Walk } from "./figure.js";
import { clone, directions, find, onSubmit } from "./ui.js";

const figures = ["plum", "mint", "sun", "coral", "sky", "rose"];

export async function squarePage(app: App): Promise<Page> {
  const scenes = new Scenes(app.sb);
  const avatar = (await scenes.avatars()).avatars[0] ?? (await newAvatar(app, scenes));
  const square = new Square(await scenes.transfer(avatar.id, "square"), avatar.id);
  return { title: "Square", element: square.element, close: () => square.close() };
}

function newAvatar(app: App, scenes: Scenes): Promise<Avatar> {
  return scenes.createAvatar({ name: app.nickname, figure: figures[Math.floor(Math.random() * figures.length)]! });
}

class Square {
  readonly element = clone("square");
  private readonly ground = find(this.element, ".ground");
  private readonly figures = new Map<string, Figure>(); // by avatar
  private readonly cleanup = new Cleanup();

  constructor(
    private readonly scene: Scene,
    private readonly avatar: string,
  ) {
    const draw = () => this.draw();
    const { members } = scene.channel; // they show who types
    this.cleanup.add(scene.on("change", draw), members.on("change", draw), () => scene.close());
    this.listenToWalks();
    this.listenToWords();
    this.draw();
  }

  close(): void {
    this.cleanup.run();
  }

  private listenToWalks(): void {
    const { ground, scene } = this;
    const me = scene.avatars.find(({ avatar }) => avatar === this.avatar);
    const walk = new Walk(placeOf(this.avatar, me?.fields), (to) => scene.set("position", to));
    ground.addEventListener("pointerdown", (event) => {
      const { left, top, width, height } = ground.getBoundingClientRect();
      walk.to([(100 * (event.clientX - left)) / width, (100 * (event.clientY - top)) / height]);
    });
    ground.addEventListener("keydown", (event) => {
      const direction = directions[event.key];
      if (!direction) return;
      event.preventDefault();
      walk.to([walk.goal[0] + 4 * direction[0], walk.goal[1] + 6 * direction[1]]);
    });
  }

  private listenToWords(): void {
    const { channel } = this.scene;
    const form = find<HTMLFormElement>(this.element, "form");
    const input = find<HTMLInputElement>(form, "input");
    input.addEventListener("input", () => channel.here(input.value ? { typing: this.avatar } : null));
    input.addEventListener("blur", () => channel.here(null));
    onSubmit(form, async ({ text }) => {
      form.reset();
      channel.here(null);
      // The broker removes the field after some seconds, for all at the same time.
      if (text?.trim()) await channel.set(`a/${this.avatar}/say`, text.trim(), { ttl: 7 });
    });
  }

  private draw(): void {
    const shown = [...this.scene.channel.members].map(({ here }) => here as { typing?: string } | undefined);
    const typing = new Set(shown.map((here) => here?.typing));
    const placed = this.scene.avatars;
    for (const one of placed) this.figureOf(one).update(one, typing.has(one.avatar));
    for (const [avatar, figure] of this.figures) {
      if (placed.some((one) => one.avatar === avatar)) continue;
      figure.element.remove(); // it is in another scene, or was deleted
      this.figures.delete(avatar);
    }
  }

  private figureOf(placed: Placed): Figure {
    let figure = this.figures.get(placed.avatar);
    if (figure) return figure;
    figure = new Figure(placed, placed.avatar === this.avatar);
    this.figures.set(placed.avatar, figure);
    this.ground.append(figure.element);
    return figure;
  }
}
