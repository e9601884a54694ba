/**
 * The client of the HTTP API, tokens and signatures, for backends in Node, Deno, Bun and workers.
 */
export { Backend } from "./backend.cjs";
export type { BackendOptions, CallOptions } from "./backend.cjs";
export type { ChannelInfo, ClientInfo, Erase, Erased, FieldPage, HistoryPage, PresencePage, Revoked, RevokeOptions, ServerInfo, StoredFields, StoredMessage, SubscriptionsChanged, UserBudget, UserInfo, UserClient, } from "./answers.cjs";
export type { Allowed, CheckQuery, DeadLetter, Duration, Finding, HealthReport, QueuePage, Rights, Scope, SelfInfo, ServerStats, WebhooksInfo, } from "./operator.cjs";
export { ApiError } from "../api.cjs";
export { SwitchboardError } from "../errors.cjs";
export { Kit } from "./kit.cjs";
export type { AccountEvent, AvatarRecord, HeldResource, ResourceSettings, RoomPlace, RoomRecord } from "./kit.cjs";
export type { Push, PushAnswer, PushError, PushResult, Target } from "./push.cjs";
export { parseSigned, verifySignature } from "./signature.cjs";
export type { BackendRequest, SignedHeaders, WebhookEvent } from "./signature.cjs";
export { signToken } from "./token.cjs";
export type { TokenClaims } from "./token.cjs";
