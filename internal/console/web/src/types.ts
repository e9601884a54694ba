// Answers of the HTTP API: the types of the JavaScript client. Its code is not in the console.

import type { Backend, SelfInfo, StoredMessage } from "../../../../client/js/src/server/index.js";
import type { WireField } from "../../../../client/js/src/wire.js";

export type {
  ChannelInfo as Channel,
  ClientInfo as Client,
  DeadLetter,
  Duration as Latency,
  FieldPage as State,
  Finding,
  HealthReport,
  HistoryPage as History,
  PresencePage as Presence,
  PushAnswer as PushResult,
  PushError,
  QueuePage as Queue,
  Rights as Check,
  Scope,
  ServerInfo as Server,
  ServerStats,
  StoredMessage as Message,
  UserBudget as Budget,
  UserClient as Device,
  UserInfo as User,
  WebhooksInfo as Webhooks,
} from "../../../../client/js/src/server/index.js";
export type { Member } from "../../../../client/js/src/wire.js";

/** Answer is the answer to a call. */
type Answer<Method extends "channels" | "deadLetters" | "stats" | "users"> = Awaited<ReturnType<Backend[Method]>>;

export type System = "rooms" | "holds" | "boards" | "accounts" | "sessions" | "scenes";
export type Self = Omit<SelfInfo, "kit"> & { kit: System[] };
export type Stats = Answer<"stats">;
export type ChannelRow = Answer<"channels">["channels"][number];
export type OnlineUsers = Answer<"users">;
export type DeadLetters = Answer<"deadLetters">;

/** Changes are the changes of fields of a message. */
export type Changes = Pick<StoredMessage, "set" | "del" | "gone">;

/** FieldValue is [id], [id, value], [id, value, until] or [id, value, until, "away"]. */
export type FieldValue = WireField;
