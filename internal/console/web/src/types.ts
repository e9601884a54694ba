// Answers of the HTTP API. Times are ms since 1970 unless a comment says otherwise. Those of operators
// are the types of the JavaScript client; its code is not in the console.

import type { Scope, ServerStats } from "../../../../client/js/dist/server/operator.js";

export type {
  Duration as Latency,
  Finding,
  HealthReport,
  Scope,
  ServerStats,
  WebhooksInfo as Webhooks,
} from "../../../../client/js/dist/server/operator.js";

export type System = "rooms" | "holds" | "boards" | "accounts" | "sessions" | "scenes";

export interface Self {
  server: string;
  version: string;
  started_at: number;
  open: boolean; // there are no API keys
  tokens: boolean; // clients need a token
  key: { name: string; scopes: Scope[] };
  redis: boolean;
  kit: System[];
  webhooks: boolean;
}

export interface Server {
  server: string;
  host: string;
  version: string;
  started_at: number;
  last_active: number;
  connections: number;
  users: number;
  channels: number;
}

export interface Stats {
  servers: ServerStats[];
  partial: boolean; // a server did not answer
}

export interface ChannelRow {
  channel: string;
  subscribers: number;
}

export interface Channel {
  channel: string;
  servers: number;
  subscribers: number;
  id: number;
  messages: number;
  partial?: boolean;
}

export interface Changes {
  set?: Record<string, unknown>;
  del?: string[];
  add?: Record<string, unknown>;
  touch?: string[];
  gone?: Record<string, string>;
  [other: string]: unknown;
}

export interface Message extends Changes {
  id: number;
  data?: unknown;
  by?: string; // the client that published it, or its alias
  from?: string; // the client, if by is an alias
  exclude?: string; // the client that did not receive it
  erased?: number; // when it was erased, ms since 1970
  erase?: number; // the message that this one reports as erased
}

export interface History {
  channel: string;
  messages: Message[];
  more: boolean;
  recovered: boolean; // false: messages after `after` are lost
  id: number; // the `after` of the next page
}

export interface Member {
  client: string;
  user?: string;
  info?: unknown;
  since: number;
}

export interface Presence {
  channel: string;
  count: number;
  users?: number;
  clients: Member[];
  cursor?: string;
}

/** FieldValue is [id], [id, value], [id, value, until] or [id, value, until, "away"]. */
export type FieldValue = [id: number, value?: unknown, until?: number, away?: string];

export interface State {
  channel: string;
  id: number;
  fields: Record<string, FieldValue>;
  cursor?: string;
}

export interface Device {
  client: string;
  server?: string;
  online: boolean;
  since?: number;
  queued: number;
}

export interface User {
  user: string;
  online: boolean;
  revoked?: number; // tokens issued before it are revoked
  clients: Device[];
}

export interface Client extends Device {
  user?: string;
  address?: string;
  expires?: number; // Unix seconds
  channels?: string[];
}

export interface Budget {
  user: string;
  objects: Record<string, { used: number; max: number }>;
  stored: Record<string, { used: number; max: number }>;
}

export interface OnlineUsers {
  count: number;
  connections: number;
  users?: { user: string; clients: string[] }[];
  cursor?: string;
}

export interface Queue {
  client: string;
  messages: Message[];
  more: boolean;
  recovered: boolean;
  id: number;
  count: number;
}

export interface PushError {
  code: string;
  message: string;
}

export interface PushResult {
  results?: {
    channel?: string;
    user?: string;
    client?: string;
    all?: boolean;
    id?: number;
    servers?: number;
    online?: boolean;
    clients?: { client: string; id: number; online: boolean }[];
    fields?: Record<string, unknown>;
    error?: PushError;
  }[];
}

export interface DeadLetter {
  id: string;
  reason: string; // expired, refused, gone or full
  at: number;
  event: { id?: string; type?: string; at?: number; [member: string]: unknown };
}

export interface DeadLetters {
  letters: DeadLetter[];
  cursor?: string;
}

export interface Check {
  error?: string; // the token is not valid; all other members but channel are then absent
  user?: string;
  client?: string;
  expires?: number;
  connect?: { allowed: boolean; why: string };
  channel: string;
  rule?: string;
  limits?: string;
  rights?: { right: string; allowed: boolean; why: string }[];
  fields?: { field: string; allowed: boolean; why: string; limits?: string }[];
}
