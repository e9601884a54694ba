import type { JsonInput } from "../wire.cjs";
export interface TokenClaims {
    /** The user. */
    sub: string;
    /** The client's own name, if the token is for one client only. */
    client?: string;
    /** Shown in presence, at most 1 KiB. */
    info?: Record<string, JsonInput>;
    /** Grants: words by channel or pattern, such as {"chat:42": "sub pub"}. */
    channels?: Record<string, string>;
    /** Channels to which each connection with the token is subscribed. */
    subscribe?: string[];
    aud?: string | string[];
    iss?: string;
    [claim: string]: unknown;
}
/**
 * Returns a token, signed with HS256. `expiresIn` is in seconds; absent: 300. The secret has at
 * least 32 bytes.
 */
export declare function signToken(secret: string | Uint8Array, claims: TokenClaims, options?: {
    expiresIn?: number;
    kid?: string;
}): Promise<string>;
/** bytesOf returns the bytes of a text in UTF-8. */
export declare function bytesOf(text: string | Uint8Array): Uint8Array<ArrayBuffer>;
