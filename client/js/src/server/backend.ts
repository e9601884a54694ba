import { Api, type ApiOptions, type Call } from "../api.js";
import { Backoff } from "../backoff.js";
import type { SwitchboardError } from "../errors.js";
import type { Json, JsonInput } from "../wire.js";
import type { RevokeOptions, Rights } from "./answers.js";
import { Kit } from "./kit.gen.js";
import type { Push, PushAnswer, PushError } from "./push.js";
import { repeats } from "./repeats.gen.js";
import type {
  ChannelInfo,
  CheckQuery,
  ClientInfo,
  DeadLetter,
  Erase,
  Erased,
  FieldPage,
  HealthReport,
  HistoryPage,
  PresencePage,
  QueuePage,
  Revoked,
  SelfInfo,
  ServerInfo,
  ServerStats,
  StoredFields,
  SubscriptionsChanged,
  UserBudget,
  UserInfo,
  WebhooksInfo,
} from "./types.gen.js";

export interface BackendOptions extends ApiOptions {
  /** For how long a call that is safe to repeat is repeated, in ms. Absent: 10,000. */
  retryFor?: number;
}

export interface CallOptions extends Call {
  /**
   * A second execution changes nothing. Absent: as the API describes the call; calls with GET are
   * repeatable.
   */
  repeatable?: boolean;
}

type Page = { limit?: number; cursor?: string };

const revocation = ({ before, durable }: RevokeOptions): CallOptions => ({
  body: { ...(before !== undefined && { before: Number(before) }), ...(durable && { durable }) },
  repeatable: true,
});

/** Backend calls the HTTP API of one or several brokers. A refusal is an ApiError. */
export class Backend {
  /** Rooms, holds, boards, accounts and scenes. */
  readonly kit: Kit;
  private readonly api: Api;
  private readonly retryFor: number;

  constructor(urls: string | string[], options: BackendOptions = {}) {
    this.api = new Api(urls, options);
    this.retryFor = options.retryFor ?? 10_000;
    this.kit = new Kit(this);
  }

  /** Pushes to one kind of target. With several targets, look at the `error` of each result. */
  push(push: Push): Promise<PushAnswer> {
    return this.call("POST", "/v1/push", { body: push });
  }

  /** Up to 1000 pushes. Each item of `results` is the answer to one push. */
  batch(messages: Push[]): Promise<{ results: (PushAnswer | { error: PushError })[] }> {
    return this.call("POST", "/v1/push/batch", { body: { messages } });
  }

  channels(
    query: Page & { prefix?: string } = {},
  ): Promise<{ channels: { channel: string; subscribers: number }[]; cursor?: string; partial?: boolean }> {
    return this.call("GET", "/v1/channels", { query });
  }

  channel(channel: string): Promise<ChannelInfo> {
    return this.call("GET", `/v1/channels/${encodeURIComponent(channel)}`);
  }

  /** Stored messages above `after`. With `wait` (seconds), an empty page waits for the next one. */
  history(channel: string, query: { after?: number; limit?: number; wait?: number } = {}): Promise<HistoryPage> {
    return this.call("GET", `/v1/channels/${encodeURIComponent(channel)}/history`, {
      query,
      wait: (query.wait ?? 0) * 1000,
    });
  }

  presence(channel: string, query: Page = {}): Promise<PresencePage> {
    return this.call("GET", `/v1/channels/${encodeURIComponent(channel)}/presence`, { query });
  }

  /** A page of the fields of a channel. */
  state(channel: string, query: Page & { prefix?: string } = {}): Promise<FieldPage> {
    return this.call("GET", `/v1/channels/${encodeURIComponent(channel)}/state`, { query });
  }

  /** A few fields of up to 100 channels. */
  queryState(channels: string[], fields: string[]): Promise<{ channels: StoredFields[] }> {
    return this.call("POST", "/v1/state/query", { body: { channels, fields } });
  }

  user(user: string): Promise<UserInfo> {
    return this.call("GET", `/v1/users/${encodeURIComponent(user)}`);
  }

  /**
   * The users that are online. `count` counts a user on two servers twice. `distinct`, of the first page, counts it once; if it
   * is not `exact`, with a standard error of 0.8 %. With the limit 0, the answer has no `users`.
   */
  users(
    query: Page = {},
  ): Promise<{
    count: number;
    connections: number;
    distinct?: number;
    exact?: boolean;
    users?: { user: string; clients: string[] }[];
    cursor?: string;
  }> {
    return this.call("GET", "/v1/users", { query });
  }

  /** Whether up to 1000 users are online. */
  online(users: string[]): Promise<{ users: { user: string; online: boolean }[] }> {
    return this.call("POST", "/v1/users/query", { body: { users } });
  }

  client(client: string): Promise<ClientInfo> {
    return this.call("GET", `/v1/clients/${encodeURIComponent(client)}`);
  }

  /**
   * Messages above `after` that wait for a client. None is acknowledged. With `wait` (seconds), an
   * empty page waits for the next one.
   */
  queue(client: string, query: { after?: number; limit?: number; wait?: number } = {}): Promise<QueuePage> {
    return this.call("GET", `/v1/clients/${encodeURIComponent(client)}/queue`, {
      query,
      wait: (query.wait ?? 0) * 1000,
    });
  }

  /**
   * Refuses the tokens of a user that were issued before a time, absent: now. Connections that used
   * them are closed as `expired`. The key needs the scope admin.
   */
  revokeUser(user: string, options: RevokeOptions = {}): Promise<Revoked> {
    return this.call("POST", `/v1/users/${encodeURIComponent(user)}/revoke`, revocation(options));
  }

  /** Like revokeUser, for one client of the user, by its full id. */
  revokeClient(client: string, options: RevokeOptions = {}): Promise<Revoked> {
    return this.call("POST", `/v1/clients/${encodeURIComponent(client)}/revoke`, revocation(options));
  }

  /**
   * Subscribes all clients of a user to channels, also those that connect later. With `after`, the
   * first subscription of each client begins after this message of one channel, or with 0 at the
   * oldest one that is kept. The key needs the scope admin.
   */
  subscribeUser(user: string, channels: string[], options: { after?: number } = {}): Promise<SubscriptionsChanged> {
    return this.call("POST", `/v1/users/${encodeURIComponent(user)}/subscribe`, { body: { channels, ...options } });
  }

  /** Like subscribeUser, for one client, by its full id. */
  subscribeClient(client: string, channels: string[], options: { after?: number } = {}): Promise<SubscriptionsChanged> {
    return this.call("POST", `/v1/clients/${encodeURIComponent(client)}/subscribe`, { body: { channels, ...options } });
  }

  /** Ends subscriptions of all clients of a user, also of those that are away. */
  unsubscribeUser(user: string, channels: string[]): Promise<SubscriptionsChanged> {
    return this.call("POST", `/v1/users/${encodeURIComponent(user)}/unsubscribe`, { body: { channels } });
  }

  /** Like unsubscribeUser, for one client, by its full id. */
  unsubscribeClient(client: string, channels: string[]): Promise<SubscriptionsChanged> {
    return this.call("POST", `/v1/clients/${encodeURIComponent(client)}/unsubscribe`, { body: { channels } });
  }

  /** How many objects a user has, and may have. Kinds that the broker does not have are missing. */
  budget(user: string): Promise<UserBudget> {
    return this.call("GET", `/v1/users/${encodeURIComponent(user)}/budget`);
  }

  /**
   * Removes what a user has in the kit, because the user does not exist any more: memberships and
   * empty rooms, scores, avatars and session documents. `removed` has the numbers by kind.
   */
  forgetUser(user: string): Promise<{ user: string; removed: Record<string, number> }> {
    return this.call("POST", `/v1/users/${encodeURIComponent(user)}/forget`);
  }

  disconnectUser(user: string): Promise<{ disconnected: number }> {
    return this.call("POST", `/v1/users/${encodeURIComponent(user)}/disconnect`);
  }

  disconnectClient(client: string): Promise<{ disconnected: number }> {
    return this.call("POST", `/v1/clients/${encodeURIComponent(client)}/disconnect`);
  }

  servers(): Promise<{ servers: ServerInfo[] }> {
    return this.call("GET", "/v1/servers");
  }

  /** The instance that answers, and what the key may do. Every key may call it. */
  self(): Promise<SelfInfo> {
    return this.call("GET", "/v1/self");
  }

  /** The figures of all live instances. partial: one did not answer and is missing. */
  stats(): Promise<{ servers: ServerStats[]; partial: boolean }> {
    return this.call("GET", "/v1/stats");
  }

  /** Explains what a client may do on a channel. A bad token is no refusal: see Rights.error. */
  check(query: CheckQuery): Promise<Rights> {
    return this.call("POST", "/v1/check", { body: query });
  }

  /** The state of the events for your backend; not_found if the broker sends none. */
  webhooks(): Promise<WebhooksInfo> {
    return this.call("GET", "/v1/webhooks");
  }

  /** Events that are no longer sent. A page may be short, and have a `cursor`. */
  deadLetters(query: Page = {}): Promise<{ letters: DeadLetter[]; cursor?: string }> {
    return this.call("GET", "/v1/webhooks/dead", { query });
  }

  /** Sends the dead letters again. The key needs the scope admin. */
  retryDeadLetters(): Promise<{ retried: number }> {
    return this.call("POST", "/v1/webhooks/dead/retry");
  }

  /** Sends one dead letter again. The key needs the scope admin. */
  async retryDeadLetter(event: string): Promise<void> {
    await this.call("POST", `/v1/webhooks/dead/${encodeURIComponent(event)}/retry`);
  }

  /** Drops one dead letter: its event is never sent. The key needs the scope admin. */
  async dropDeadLetter(event: string): Promise<void> {
    await this.call("DELETE", `/v1/webhooks/dead/${encodeURIComponent(event)}`);
  }

  /** What needs the attention of an operator, on all instances and in Redis. */
  health(): Promise<HealthReport> {
    return this.call("GET", "/v1/health");
  }

  /**
   * Erases a message of a channel: its data and its author leave the store, the histories and the memory of all
   * brokers. Clients receive its id. Its changes of fields stay. not_found if the channel has no such message.
   */
  erase(message: Erase): Promise<Erased> {
    return this.call("POST", "/v1/erase", { body: message });
  }

  /** Says that your backend has written messages to the queues of these in Redis. */
  async notify(queues: { channels?: string[]; clients?: string[] }): Promise<void> {
    await this.call("POST", "/v1/notify", { body: queues });
  }

  /** Answers a request that a worker has taken from Redis. */
  async reply(client: string, ref: number, data: JsonInput): Promise<void> {
    await this.call("POST", "/v1/reply", { body: { client, ref, data } });
  }

  /** Any call of the API: the path has its names escaped. */
  async call<Answer = Json>(method: string, path: string, options: CallOptions = {}): Promise<Answer> {
    const backoff = new Backoff(100, 2000);
    const end = Date.now() + this.retryFor;
    for (;;) {
      try {
        return await this.api.call<Answer>(method, path, options);
      } catch (error) {
        const { code, retryAfter = 0 } = error as SwitchboardError & { retryAfter?: number };
        // A call over its rate was not executed, so it is repeated in any case.
        const unknown = ["lost", "unavailable", "timeout"].includes(code);
        const again = code === "rate_limited" || (unknown && (options.repeatable ?? mayRepeat(method, path, options)));
        const delay = Math.max(backoff._next(), retryAfter * 1000);
        if (!again || Date.now() + delay > end) throw error;
        await new Promise((resolve) => setTimeout(resolve, delay));
      }
    }
  }
}

/** Whether a second execution of a call changes nothing. */
function mayRepeat(method: string, path: string, { headers, body }: CallOptions): boolean {
  if (method === "GET") return true;
  const segments = path.split("/");
  const rule = repeats.find(([ruleMethod, pattern]) => {
    const want = pattern.split("/");
    return (
      ruleMethod === method &&
      want.length === segments.length &&
      want.every((segment, i) => segment === "*" || segment === segments[i])
    );
  });
  if (!rule) return false;
  const [, , members, conditions] = rule;
  const has = (name: string) => headers?.[name] !== undefined || hasMember(body, name);
  return (members.length === 0 || members.some(has)) && !conditions.some(has);
}

/** Whether a body has a member. A batch has it if all of its messages have it. */
function hasMember(body: unknown, name: string): boolean {
  if (typeof body !== "object" || body === null) return false;
  const { messages, [name]: value } = body as Record<string, unknown>;
  if (Array.isArray(messages) && messages.length > 0) return messages.every((m) => hasMember(m, name));
  return value !== undefined && value !== null && value !== "";
}
