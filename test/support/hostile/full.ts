import fs from 'node:fs'
import os from 'node:os'
import type { Teardown } from '../tmp.js'
import { type Attack, ATTACKS } from './attacks.js'
import { HonestCalls, timesOf, type Times } from './honest-calls.js'
import { MAX_DISK, MAX_MEMORY, MAX_RATIO, TOLERANCE_MS } from './limits.js'
import { Blowing, type Outcome, revoke, runAttack } from './run.js'
import { type AttackScene, attackScene, type Taken, takenBy } from './scene.js'

/** From one honest call to the next, and from one blow to the next, in milliseconds. */
const PACE_MS = 20
/** How long one attack of many goes on, in milliseconds. */
const TURN_MS = 15_000

/** An attack and what it cost. */
export interface Report extends Outcome {
  readonly name: string
  /** What must not be; empty: all is well. */
  readonly faults: readonly string[]
}

export { MAX_MEMORY } from './limits.js'

/** All attacks, in their order. */
export const attacks: readonly Attack[] = Object.values(ATTACKS)

/**
 * Runs an attack in its full size in a mesh of its own. `calls`: honest ones without and with it, each; in `rounds`
 * turns.
 */
export async function fullRun(
  attack: Attack,
  { calls, rounds }: { readonly calls: number; readonly rounds: number }
): Promise<Report> {
  return await inScope(async (t) => {
    const scene = await attackScene(t, { isAdmin: attack.isAdmin === true })
    const options = { size: 'full', calls: Math.ceil(calls / rounds), rounds, paceMs: PACE_MS } as const
    const outcome = await runAttack(t, scene, { attack, ...options })
    return { name: attack.name, ...outcome, faults: faultsOf(attack, outcome) }
  })
}

function faultsOf(attack: Attack, { quiet, busy, before, after, returned, cutSeconds }: Outcome): string[] {
  const maxDisk = attack.maxDisk ?? MAX_DISK
  const maxP99 = MAX_RATIO * quiet.p99 + TOLERANCE_MS
  return [
    after.memory > MAX_MEMORY ? `an honest node takes ${after.memory} MiB of memory, ${MAX_MEMORY} are allowed` : '',
    after.disk - before.disk > maxDisk
      ? `the attack made an honest node keep ${after.disk - before.disk} MiB, ${maxDisk} are allowed`
      : '',
    busy.p99 > maxP99 ? `p99 of honest calls is ${busy.p99} ms, ${Math.round(maxP99)} are allowed` : '',
    attack.isCut === true && cutSeconds === null ? 'she is not cut' : '',
    returned !== null && returned.disk - before.disk > MAX_DISK
      ? `${returned.disk - before.disk} MiB were not given back`
      : ''
  ].filter((fault) => fault !== '')
}

/** What an hour, or less, of all attacks cost. */
export interface Siege {
  readonly quiet: Times
  readonly busy: Times
  readonly before: Taken
  readonly after: Taken
  /** How often she was cut. */
  readonly cuts: number
  readonly revokedSeconds: number
  readonly faults: readonly string[]
}

/** How long a siege is, and of which attacks. */
export interface SiegeOptions {
  readonly minutes: number
  /** Taken in turn. */
  readonly attacks: readonly Attack[]
  /** Told of each attack that ends. */
  say(line: string): void
}

/**
 * Attacks in turn by one member for so many minutes while an honest node makes calls at another; then she is revoked.
 * @throws Error when an honest call does not end COMPLETED
 */
export async function siege({ minutes, attacks: all, say }: SiegeOptions): Promise<Siege> {
  return await inScope(async (t) => {
    const scene = await attackScene(t, { isAdmin: true })
    const honest = new HonestCalls(t, { home: scene.bob.home, paceMs: PACE_MS })
    await honest.make(200)
    const before = await takenBy(scene)
    yieldProcessors()
    const quiet = timesOf(await honest.make(1000))
    let blows: Blowing | null = null
    let revokedSeconds = 0
    const job = async (): Promise<void> => {
      await inTurn(scene, { minutes, attacks: all, say, honest, onBegin: (next) => (blows = next) })
      revokedSeconds = await revoke(scene)
    }
    const busy = timesOf(await honest.during(job, () => blows?.next()))
    const after = await takenBy(scene)
    const cuts = scene.eve.member.seen.closed.length
    const faults = faultsOf(SIEGE, {
      quiet,
      busy,
      before,
      after,
      rounds: [],
      returned: null,
      cutSeconds: null,
      revokedSeconds
    })
    return { quiet, busy, before, after, cuts, revokedSeconds, faults }
  })
}

/** All attacks together may fill the share of documents and the largest that any other one fills. */
const SIEGE: Pick<Attack, 'maxDisk'> & Attack = {
  ...ATTACKS.streams,
  name: 'all attacks in turn',
  maxDisk: ATTACKS.streams.maxDisk + MAX_DISK
}

/** Nothing else is taken into the log of who did that. */
const LAST: Attack = ATTACKS.writerBlocks

interface Turns extends SiegeOptions {
  readonly honest: HonestCalls
  onBegin(blows: Blowing): void
}

async function inTurn(scene: AttackScene, { minutes, attacks: all, ...turns }: Turns): Promise<void> {
  const others = all.filter((one) => one !== LAST)
  const end = performance.now() + minutes * 60_000 - TURN_MS
  while (performance.now() < end)
    for (const attack of others) {
      if (performance.now() >= end) break
      await oneTurn(scene, { attack, ...turns })
    }
  if (others.length < all.length) await oneTurn(scene, { attack: LAST, ...turns })
}

/** An attack that cannot begin, since the member is cut, has the same time. */
async function oneTurn(
  scene: AttackScene,
  { attack, say, honest, onBegin }: Omit<Turns, 'minutes' | 'attacks'> & { readonly attack: Attack }
): Promise<void> {
  const from = honest.times.length
  let isOver = false
  let rest = (): void => {}
  void attack
    .begin(scene, 'full')
    .then((begun) => {
      if (isOver) return
      const blows = new Blowing(begun)
      rest = () => void blows.rest().catch(() => {})
      onBegin(blows)
    })
    .catch(() => {})
  await new Promise((resolve) => setTimeout(resolve, TURN_MS))
  isOver = true
  rest()
  const { memory, disk } = await takenBy(scene)
  const { calls, p99, max } = timesOf(honest.times.slice(from))
  say(
    `${attack.name}: ${calls} honest calls, p99 ${p99} ms, at most ${max} ms; so far ${memory} MiB of memory, ${disk} MiB of disk`
  )
}

/**
 * The member lives in this process, and would have a machine of its own: honest processes, which have begun, go first.
 */
function yieldProcessors(): void {
  if (process.platform !== 'linux') return
  for (const thread of fs.readdirSync('/proc/self/task'))
    os.setPriority(Number(thread), os.constants.priority.PRIORITY_LOW)
}

/** Runs a job like a test: what it makes is gone when it ends. */
async function inScope<T>(job: (t: Teardown) => Promise<T>): Promise<T> {
  const ends: { readonly order: number; end(): unknown }[] = []
  try {
    return await job({ teardown: (end, { order = 0 } = {}) => void ends.push({ order, end }) })
  } finally {
    for (const { end } of ends.toSorted((a, b) => a.order - b.order)) await end()
  }
}
