import type { Saved } from "./storage.js";

/** The positions of channels that were not used for this time are forgotten, in ms. */
const keepFor = 30 * 86_400_000;
/** Above this number, also the least recently used that were not used for `keepBusy` ms. */
const keepNumber = 1000;
const keepBusy = 7 * 86_400_000;

/**
 * usesToKeep returns when the stored channels were last used, without those to forget. A channel
 * that was stored without a time counts as used now, and so does one whose time is in the future.
 */
export function usesToKeep({ channels = {}, used = {} }: Saved, now: number): [name: string, at: number][] {
  return Object.keys(channels)
    .map((name): [string, number] => [name, Math.min(Number(used[name]) || now, now)])
    .sort((a, b) => b[1] - a[1])
    .filter(([, at], i) => now - at < (i < keepNumber ? keepFor : keepBusy));
}

/** A feed whose position is stored. */
interface Positioned {
  name: string;
  position: number | undefined;
}

/** snapshot returns what to store, with the positions of feeds. */
export function snapshot(saved: Saved, inbox: Positioned, all: Positioned, feeds: Iterable<Positioned>): Saved {
  const now = Date.now();
  const used = new Map(usesToKeep(saved, now));
  const channels = new Map([...used.keys()].map((name) => [name, saved.channels![name]!]));
  for (const { name, position = channels.get(name) } of feeds) {
    if (position === undefined) continue;
    channels.set(name, position);
    used.set(name, now);
  }
  return {
    ...saved,
    inbox: inbox.position,
    all: all.position,
    channels: Object.fromEntries(channels),
    used: Object.fromEntries(used),
  };
}
