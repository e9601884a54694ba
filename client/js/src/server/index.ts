/**
 * The client of the HTTP API, tokens and signatures, for backends in Node, Deno, Bun and workers.
 */
export { Backend } from "./backend.js";
export type { BackendOptions, CallOptions } from "./backend.js";
export type { RevokeOptions, Rights, Scope } from "./answers.js";
export type {
  AccountEvent,
  Allowed,
  ChannelInfo,
  CheckQuery,
  ClientInfo,
  DeadLetter,
  Duration,
  Erase,
  Erased,
  FieldPage,
  Finding,
  HealthReport,
  HistoryPage,
  PresencePage,
  QueuePage,
  ResourceSettings,
  Revoked,
  RoomMember,
  RoomPlace,
  RoomRecord,
  SelfInfo,
  ServerInfo,
  ServerStats,
  StoredFields,
  StoredMessage,
  SubscriptionsChanged,
  UserBudget,
  UserClient,
  UserInfo,
  WebhooksInfo,
} from "./types.gen.js";
export { ApiError } from "../api.js";
export { SwitchboardError } from "../errors.js";
export { Kit } from "./kit.gen.js";
export type { Avatar as AvatarRecord, Resource as HeldResource } from "../kit/types.gen.js";
export type { Push, PushAnswer, PushError, PushResult, Target } from "./push.js";
export { parseSigned, verifySignature } from "./signature.js";
export type { BackendRequest, SignedHeaders, WebhookEvent } from "./signature.js";
export { signToken } from "./token.js";
export type { TokenClaims } from "./token.js";
