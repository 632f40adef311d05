import v8 from 'node:v8'

/**
 * Heap growth beyond live data before a collection, in percent. The default of V8 lets it grow to several times the
 * live data under load and keeps it. A node runs for weeks beside other work of its machine. With 50 percent two nodes
 * took 10 to 15 MiB more after 4,000 calls, and the same processor time.
 */
const GROWTH_PERCENT = 20

/**
 * Sets the garbage collection of a node process before its heap has grown. The young generation stays small. By default
 * it grows to 32 MiB at the first burst and stays there, while calls cost the same in a small one. One thread collects.
 * With helpers a collection took 1.43 ms and 0.81 ms of helper time instead of 1.50 ms (calls of the gateway).
 * Memory goes before speed: pages that are partly empty are merged. A node under all attacks of `npm run hostile` held
 * 166 MiB instead of 195 to 207; calls cost the same processor time.
 */
export function tuneHeap(): void {
  v8.setFlagsFromString(`--heap-growing-percent=${GROWTH_PERCENT}`)
  v8.setFlagsFromString('--semi-space-growth-factor=1')
  v8.setFlagsFromString('--no-parallel-scavenge')
  v8.setFlagsFromString('--optimize-for-size')
}
