/** The hall: 120 seats to hold and to buy. */
import type { SwitchboardError } from "switchboard-client";
import { Holds, type Hold } from "switchboard-client/kit";
import { Cleanup, type App, type Page } from "./app.js";
import { arrows, attempt, h, notify, seconds, show } from "./ui.js";

const hall = "hall";
const rows = [..."ABCDEFGHIJ"];
const most = 6; // seats of one hold

export async function hallPage(app: App): Promise<Page> {
  const cleanup = new Cleanup();
  const holds = new Holds(app.sb);
  const seats = await holds.seats(hall).ready();
  const chosen = new Set<string>();
  let held: Hold | undefined; // the hold of this user
  let taking = false; // a hold without an answer
  let bought: string[] = [];

  const buttons = new Map<string, HTMLButtonElement>();
  const plan = h("div", { className: "plan", role: "group", "aria-label": "Seats" });
  for (const row of rows) {
    plan.append(h("span", { className: "letter", "aria-hidden": "true" }, row));
    for (let number = 1; number <= 12; number++) {
      const seat = `${row}${number}`;
      const button = h("button", { className: "seat", tabIndex: seat === "A1" ? 0 : -1, onclick: () => choose(seat), "data-seat": seat });
      buttons.set(seat, button);
      plan.append(button);
    }
  }
  arrows(plan, ".seat");

  function choose(seat: string): void {
    if (held) return notify("Buy your seats, or give them back, before you choose others.");
    if (seats.get(seat).state !== "free") return notify(`${seat} is ${seats.get(seat).state === "sold" ? "sold" : "held by another visitor"}.`);
    if (!chosen.delete(seat) && chosen.size < most) chosen.add(seat);
    draw();
  }

  const bar = h("div", { className: "bar", role: "status" });
  const counts = h("p", { className: "counts" });

  function draw(): void {
    const lost = [...chosen].filter((seat) => seats.get(seat).state !== "free");
    if (lost.length && !taking) taken(lost);
    let [sold, kept] = [0, 0];
    for (const [seat, button] of buttons) {
      const { state, until } = seats.get(seat);
      const mine = held?.seats.includes(seat) || bought.includes(seat);
      button.className = `seat ${state}${mine ? " mine" : ""}${chosen.has(seat) ? " chosen" : ""}`;
      button.textContent = state === "held" ? String(seconds(until)) : "";
      button.ariaPressed = String(chosen.has(seat));
      button.ariaLabel = `${seat}, ${mine ? (held ? "held for you" : "yours") : chosen.has(seat) ? "chosen" : state}`;
      if (state === "sold") sold++;
      if (state === "held") kept++;
    }
    counts.textContent = `${buttons.size - sold - kept} free · ${kept} held · ${sold} sold`;
    drawBar();
  }

  function drawBar(): void {
    const hold = held;
    if (hold) {
      show(bar, h("span", { className: "grow" }, h("b", {}, hold.seats.join(", ")), ` ${hold.seats.length > 1 ? "are" : "is"} yours for ${seconds(hold.until)} s.`),
        h("button", { id: "buy", className: "primary", onclick: () => void buy(hold) }, "Buy"),
        h("button", { id: "return", onclick: () => void giveBack(hold) }, "Give back"));
    } else if (chosen.size) {
      show(bar, h("span", { className: "grow" }, h("b", {}, [...chosen].join(", "))),
        h("button", { id: "hold", className: "primary", onclick: () => void take() }, "Hold for a minute"));
    } else {
      show(bar, h("span", { className: "grow" }, bought.length ? `You have bought ${bought.join(", ")}. ` : "", `Choose up to ${most} seats.`));
    }
  }

  /** Some chosen seats belong to others now. Either the state says so, or the refusal of a hold. */
  function taken(lost: string[]): void {
    for (const seat of lost) chosen.delete(seat);
    notify(`${lost.join(", ")}: another visitor was faster.`);
  }

  const take = () => attempt(async () => {
    taking = true;
    try {
      held = await holds.take(hall, { seats: [...chosen] }); // all of them, or none
      chosen.clear();
    } catch (error) {
      const lost = ((error as SwitchboardError).data as { taken?: string[] } | undefined)?.taken;
      if (!lost) throw error;
      taken(lost);
    } finally {
      taking = false;
      draw();
    }
  });

  const buy = (hold: Hold) => attempt(async () => {
    await app.sb.request({ buy: hold.id }); // the backend takes the money, and confirms the hold
    await refresh();
  }, ({ code }) => (code === "expired" ? "The time was over. The seats are free again." : undefined));

  const giveBack = (hold: Hold) => attempt(async () => {
    await holds.release(hall, hold.id);
    await refresh();
  });

  /** Asks which seats are this user's: the seats in the state have no names of users. */
  async function refresh(): Promise<void> {
    const mine = await holds.mine(hall);
    held = mine.find(({ state }) => state === "held");
    bought = mine.filter(({ state }) => state === "sold").flatMap((sale) => sale.seats);
    draw();
  }

  cleanup.add(seats.on("change", () => {
    if (held?.seats.some((seat) => seats.get(seat).state !== "held")) void attempt(refresh); // it has ended, or is sold
    draw();
  }), () => seats.close());
  cleanup.everySecond(draw); // countdowns
  await refresh();
  return {
    title: "Hall",
    element: h("div", { className: "hall" },
      h("section", { className: "card" },
        h("h1", {}, "The hall"), counts,
        h("div", { className: "stage" }, "Stage"),
        plan, legend(), bar)),
    close: () => cleanup.run(),
  };
}

function legend(): HTMLElement {
  const kinds = { free: "free", held: "held, with the seconds that are left", sold: "sold", "held mine": "yours" };
  return h("p", { className: "legend" }, ...Object.entries(kinds).map(([kind, text]) => h("span", {}, h("i", { className: `seat ${kind}` }), text)));
}
