import type { Channel, Switchboard } from "switchboard-client";
import type { Room } from "switchboard-client/kit";

/** What the pages share. */
export interface App {
  sb: Switchboard;
  /** The id of the account. It is the user in messages. */
  user: string;
  nickname: string;
  /** The chat. Its state has the nickname of each user. */
  chat: Channel<string, Record<string, string>>;
  messages: { author: string; text: string }[];
  /** The room that this user is in. */
  room?: Room | undefined;
}

/** A page. `close` ends its subscriptions. */
export interface Page {
  title: string;
  element: HTMLElement;
  close(): void;
}

/** nameOf returns the nickname of a user. */
export const nameOf = (app: App, user: string) => app.chat.state.get(user) ?? "unknown";

/** Cleanup collects what to undo when a page closes. */
export class Cleanup {
  private readonly tasks: (() => unknown)[] = [];

  add(...tasks: (() => unknown)[]): void {
    this.tasks.push(...tasks);
  }

  /** Calls a function every second. */
  everySecond(task: () => void): void {
    const timer = setInterval(task, 1000);
    this.add(() => clearInterval(timer));
  }

  run(): void {
    for (const task of this.tasks.splice(0)) task();
  }
}
