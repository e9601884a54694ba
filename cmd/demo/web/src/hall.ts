/** The hall: 120 seats to hold and to buy. */
import type { SwitchboardError } from "switchboard-client";
import { Holds, type Hold, type SeatMap } from "switchboard-client/kit";
import { Cleanup, type App, type Page } from "./app.js";
import { arrows, attempt, button, clone, find, h, notify, onClick, seconds, show } from "./ui.js";

const resource = "hall";
const most = 6; // seats of one hold

export async function hallPage(app: App): Promise<Page> {
  const holds = new Holds(app.sb);
  const hall = new Hall(app, holds, await holds.seats(resource).ready());
  await hall.refresh();
  return { title: "Hall", element: hall.element, close: () => hall.close() };
}

class Hall {
  readonly element = clone("hall");
  private readonly bar = find(this.element, ".bar");
  private readonly buttons = new Map<string, HTMLElement>();
  private readonly chosen = new Set<string>();
  private held: Hold | undefined; // the hold of this user
  private bought: string[] = [];
  private taking = false; // a hold has no answer yet
  private offer = ""; // for which situation the bar is drawn
  private readonly cleanup = new Cleanup();

  constructor(
    private readonly app: App,
    private readonly holds: Holds,
    private readonly seats: SeatMap,
  ) {
    const plan = find(this.element, ".plan");
    for (const row of "ABCDEFGHIJ") {
      plan.append(h("span", { class: "letter", "aria-hidden": "true" }, row));
      for (let number = 1; number <= 12; number++) plan.append(this.newSeat(`${row}${number}`));
    }
    arrows(plan, ".seat");
    this.cleanup.add(
      seats.on("change", () => this.changed()),
      () => seats.close(),
    );
    this.cleanup.everySecond(() => this.draw()); // the countdowns
  }

  close(): void {
    this.cleanup.run();
  }

  /** Asks which seats are this user's: the state does not say who holds a seat. */
  async refresh(): Promise<void> {
    const mine = await this.holds.mine(resource);
    this.held = mine.find(({ state }) => state === "held");
    this.bought = mine.filter(({ state }) => state === "sold").flatMap((sale) => sale.seats);
    this.draw();
  }

  private newSeat(seat: string): HTMLElement {
    const element = h("button", { class: "seat", "data-seat": seat });
    onClick(element, () => this.choose(seat));
    this.buttons.set(seat, element);
    return element;
  }

  private choose(seat: string): void {
    const { state } = this.seats.get(seat);
    if (this.held) return notify("Buy your seats, or give them back, before you choose others.");
    if (state !== "free") return notify(state === "sold" ? `${seat} is sold.` : `${seat} is held by another visitor.`);
    if (!this.chosen.delete(seat) && this.chosen.size < most) this.chosen.add(seat);
    this.draw();
  }

  private changed(): void {
    const { held, seats } = this;
    if (held?.seats.some((seat) => seats.get(seat).state !== "held")) void attempt(() => this.refresh()); // it has ended
    this.draw();
  }

  /** Some chosen seats belong to others now. Either the state says so, or the refusal of a hold. */
  private lose(lost: string[]): void {
    for (const seat of lost) this.chosen.delete(seat);
    notify(`${lost.join(", ")}: another visitor was faster.`);
  }

  private async take(): Promise<void> {
    this.taking = true;
    try {
      this.held = await this.holds.take(resource, { seats: [...this.chosen] }); // all of them, or none
      this.chosen.clear();
    } catch (error) {
      const data = (error as SwitchboardError).data as { taken?: string[] } | undefined;
      if (!data?.taken) throw error;
      this.lose(data.taken);
    } finally {
      this.taking = false;
      this.draw();
    }
  }

  private async buy(hold: Hold): Promise<void> {
    try {
      await this.app.sb.request({ buy: hold.id }); // the backend takes the money, and confirms the hold
    } finally {
      await this.refresh(); // the time may be over
    }
  }

  private async giveBack(hold: Hold): Promise<void> {
    await this.holds.release(resource, hold.id);
    await this.refresh();
  }

  private draw(): void {
    const lost = [...this.chosen].filter((seat) => this.seats.get(seat).state !== "free");
    if (lost.length && !this.taking) this.lose(lost);
    const counts = { free: 0, held: 0, sold: 0 };
    for (const [seat, element] of this.buttons) {
      const { state, until } = this.seats.get(seat);
      const whose = this.held?.seats.includes(seat) || this.bought.includes(seat) ? "mine" : "";
      const chosen = this.chosen.has(seat);
      counts[state]++;
      element.className = `seat ${state} ${whose} ${chosen ? "chosen" : ""}`;
      element.textContent = state === "held" ? String(seconds(until)) : "";
      element.ariaPressed = String(chosen);
      element.ariaLabel = `${seat}, ${state}${whose && " for you"}`;
    }
    show(find(this.element, ".counts"), `${counts.free} free · ${counts.held} held · ${counts.sold} sold`);
    this.drawBar();
  }

  /** Draws the bar when it differs. A button that is replaced each second would lose clicks. */
  private drawBar(): void {
    const { held, chosen, bought } = this;
    const offer = JSON.stringify([held?.id, [...chosen], bought]);
    if (offer !== this.offer) show(this.bar, ...this.choices());
    this.offer = offer;
    if (held) show(find(this.bar, ".left"), `${seconds(held.until)} s`);
  }

  /** The choices that the user has now. */
  private choices(): HTMLElement[] {
    const { held, chosen, bought } = this;
    const text = (seats: string[], rest: string) =>
      h("span", { class: "grow" }, h("b", {}, seats.join(", ")), rest, h("b", { class: "left" }));
    if (held) {
      return [
        text(held.seats, ": yours for "),
        button("buy", "Buy", "primary", () => this.buy(held)),
        button("return", "Give back", "", () => this.giveBack(held)),
      ];
    }
    if (chosen.size) return [text([...chosen], ""), button("hold", "Hold for a minute", "primary", () => this.take())];
    return [text(bought, bought.length ? ": bought. Choose more?" : `Choose up to ${most} seats.`)];
  }
}
