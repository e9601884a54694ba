/**
 * The client of the HTTP API, tokens and signatures, for backends in Node, Deno, Bun and workers.
 */
export { Backend } from "./backend.js";
export type { BackendOptions, CallOptions } from "./backend.js";
export type { ChannelInfo, ClientInfo, Erase, Erased, FieldPage, HistoryPage, PresencePage, Revoked, RevokeOptions, ServerInfo, StoredFields, StoredMessage, SubscriptionsChanged, UserBudget, UserInfo, UserClient, } from "./answers.js";
export type { Allowed, CheckQuery, DeadLetter, Duration, Finding, HealthReport, QueuePage, Rights, Scope, SelfInfo, ServerStats, WebhooksInfo, } from "./operator.js";
export { ApiError } from "../api.js";
export { SwitchboardError } from "../errors.js";
export { Kit } from "./kit.js";
export type { AccountEvent, AvatarRecord, HeldResource, ResourceSettings, RoomPlace, RoomRecord } from "./kit.js";
export type { Push, PushAnswer, PushError, PushResult, Target } from "./push.js";
export { parseSigned, verifySignature } from "./signature.js";
export type { BackendRequest, SignedHeaders, WebhookEvent } from "./signature.js";
export { signToken } from "./token.js";
export type { TokenClaims } from "./token.js";
