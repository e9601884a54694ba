/**
 * now returns a time in ms for the measurement of durations. A change of the device's clock does
 * not move it.
 */
export function now(): number {
  return performance.now();
}
