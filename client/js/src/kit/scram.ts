/** The client's part of SCRAM-SHA-256 (RFC 5802, RFC 7677), without channel binding. */
export class Scram {
  private readonly nonce = base64(crypto.getRandomValues(new Uint8Array(18)));
  private readonly bare: string;
  private expected = "";

  constructor(
    name: string,
    private readonly password: string,
  ) {
    this.bare = `n=${name.replace(/=/g, "=3D").replace(/,/g, "=2C")},r=${this.nonce}`;
  }

  /** The first message. */
  get first(): string {
    return `n,,${this.bare}`;
  }

  /** Returns the second message, for the server's first one. */
  async final(serverFirst: string): Promise<string> {
    const [nonce, salt, iterations] = ["r", "s", "i"].map((name) => member(serverFirst, name));
    if (!nonce?.startsWith(this.nonce) || !salt || !(Number(iterations) >= 4096)) {
      throw new Error("the server's challenge is not valid");
    }
    const unproved = `c=biws,r=${nonce}`;
    const message = bytesOf(`${this.bare},${serverFirst},${unproved}`);
    const salted = await derive(prepare(this.password), salt, Number(iterations));
    const clientKey = await hmac(salted, bytesOf("Client Key"));
    const storedKey = new Uint8Array(await crypto.subtle.digest("SHA-256", clientKey));
    const signature = await hmac(storedKey, message);
    const proof = clientKey.map((byte, i) => byte ^ signature[i]!);
    this.expected = base64(await hmac(await hmac(salted, bytesOf("Server Key")), message));
    return `${unproved},p=${base64(proof)}`;
  }

  /** Verifies the server's last message: it proves that the server knows the account. */
  verify(serverFinal: string): void {
    if (!this.expected || member(serverFinal, "v") !== this.expected) {
      throw new Error("the server does not know the account");
    }
  }
}

/** prepare maps a password as SASLprep does (RFC 4013 §2.1 and §2.2). */
function prepare(password: string): string {
  return password
    .replace(/[\u00a0\u1680\u2000-\u200b\u202f\u205f\u3000]/g, " ")
    .replace(/\u00ad|\u034f|\u1806|[\u180b-\u180d]|\u200c|\u200d|\u2060|[\ufe00-\ufe0f]|\ufeff/g, "")
    .normalize("NFKC");
}

function member(message: string, name: string): string | undefined {
  const found = message.split(",").find((part) => part.startsWith(`${name}=`));
  return found?.slice(2);
}

async function derive(password: string, salt: string, iterations: number): Promise<Uint8Array<ArrayBuffer>> {
  const key = await crypto.subtle.importKey("raw", bytesOf(password), "PBKDF2", false, ["deriveBits"]);
  const bytes = Uint8Array.from(atob(salt), (c) => c.charCodeAt(0));
  const parameters = { name: "PBKDF2", hash: "SHA-256", salt: bytes, iterations };
  return new Uint8Array(await crypto.subtle.deriveBits(parameters, key, 256));
}

async function hmac(key: Uint8Array<ArrayBuffer>, text: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const imported = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", imported, text));
}

function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}

function base64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes));
}
