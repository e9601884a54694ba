import { SwitchboardError } from "./errors.js";

/** within rejects with the code `timeout` if the promise takes longer than `ms`; 0 for no limit. */
export async function within<Result>(ms: number, promise: Promise<Result> | Result, what: string): Promise<Result> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    const error = new SwitchboardError("timeout", `no ${what} in time`);
    if (ms) timer = setTimeout(() => reject(error), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
