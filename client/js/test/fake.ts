import { mock } from "node:test";
import type { Socket } from "../src/connection.js";
import { Switchboard, type Options } from "../src/index.js";
import type { Incoming, Outgoing } from "../src/wire.js";

/** A WebSocket whose server is the test. */
export class FakeSocket implements Socket {
  static last: FakeSocket;
  static count = 0;
  onopen: (() => unknown) | null = null;
  onmessage: ((event: { data: string }) => unknown) | null = null;
  onerror: ((event: { message?: string }) => unknown) | null = null;
  onclose: ((event: { code: number; reason?: string }) => unknown) | null = null;
  /** What the client has sent and no `take` has returned. */
  sent: Outgoing[] = [];
  closed = false;

  constructor(readonly url: string) {
    FakeSocket.last = this;
    FakeSocket.count++;
  }

  send(text: string): void {
    this.sent.push(JSON.parse(text) as Outgoing);
  }

  close(): void {
    this.closed = true;
  }

  /** Sends messages to the client, all of them in one task. */
  receive(...messages: Incoming[]): void {
    for (const m of messages) this.onmessage?.({ data: JSON.stringify(m) });
  }

  /** Ends the connection. */
  end(code = 1006): void {
    this.onclose?.({ code });
  }

  /** Returns and removes the next message of a type. */
  take(type: string): Outgoing {
    const i = this.sent.findIndex((m) => m.type === type);
    if (i < 0) throw new Error(`no ${type} among ${JSON.stringify(this.sent)}`);
    return this.sent.splice(i, 1)[0]!;
  }

  /** The types of the messages that were not taken. */
  get types(): string {
    return this.sent.map((m) => m.type).join(" ");
  }

  /** Answers connect. */
  connect(connected: Partial<Incoming> = {}): Outgoing {
    this.onopen?.();
    const hello = this.take("connect");
    this.receive({ type: "connected", ref: hello.ref!, client: "c-1", server: "b1", id: 100, ...connected });
    return hello;
  }

  /** Answers the next message of a type. */
  answer(type: string, answer: Incoming): Outgoing {
    const m = this.take(type);
    this.receive({ ref: m.ref!, ...answer });
    return m;
  }

  /** Answers the next subscribe. */
  subscribed(more: Partial<Incoming> = {}): Outgoing {
    const m = this.take("subscribe");
    this.receive({ type: "subscribed", ref: m.ref!, channel: m.channel!, id: 10, ...more });
    return m;
  }
}

/** Stops the clock. Time passes in `tick` only. */
export function stopClock(): void {
  performance.now = () => Date.now();
  mock.timers.enable({ apis: ["setTimeout", "Date"], now: 1_800_000_000_000 });
}

export function tick(ms: number): void {
  mock.timers.tick(ms);
}

/** Waits until all promises that can be resolved are. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** Returns a client that has dialled. Its errors are in `errors`. */
export async function dialled(
  options: Options = {},
  urls: string | string[] = "ws://a/ws",
): Promise<{ sb: Switchboard; errors: unknown[] }> {
  const sb = new Switchboard(urls, { WebSocket: FakeSocket, ...options });
  const errors: unknown[] = [];
  sb.on("error", (error) => errors.push(error));
  await settle();
  return { sb, errors };
}

/** Returns a connected client. */
export async function connected(
  options: Options = {},
  answer: Partial<Incoming> = {},
): Promise<{ sb: Switchboard; errors: unknown[]; socket: FakeSocket }> {
  const client = await dialled(options);
  FakeSocket.last.connect(answer);
  return { ...client, socket: FakeSocket.last };
}

/** Ends the connection, and returns the next one, connected. */
export async function reconnect(code?: number): Promise<FakeSocket> {
  FakeSocket.last.end(code);
  tick(20_000);
  await settle();
  FakeSocket.last.connect();
  return FakeSocket.last;
}
