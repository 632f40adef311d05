import { untilPeer, untilTrue } from '../nodes.js'
import type { Teardown } from '../tmp.js'
import type { Attack, Blows, Size } from './attacks.js'
import { HonestCalls, timesOf, type Times } from './honest-calls.js'
import { type AttackScene, type Taken, takenBy } from './scene.js'

/** How an attack is run. */
export interface RunOptions {
  readonly size: Size
  /** Honest calls of each phase. */
  readonly calls: number
  /** Phases without and with the attack, in turn. */
  readonly rounds: number
  /**
   * From the beginning of an honest call, and with it a blow, to that of the next, in milliseconds; 0: one after the
   * other.
   */
  readonly paceMs: number
}

/** Two phases of honest calls. */
export interface Round {
  readonly quiet: Times
  readonly busy: Times
}

/** What an attack cost honest nodes. */
export interface Outcome {
  readonly rounds: readonly Round[]
  /** Of all rounds. */
  readonly quiet: Times
  readonly busy: Times
  /**
   * What the honest nodes had taken before, after the attack, and when the bytes were given back; null: nobody waited
   * for that.
   */
  readonly before: Taken
  readonly after: Taken
  readonly returned: Taken | null
  /** Seconds from the first blow until an honest node cut her; null: she was only held to her share. */
  readonly cutSeconds: number | null
  /** Seconds from the command that revokes her until her last link was gone, while she attacked. */
  readonly revokedSeconds: number
}

/**
 * Attacks an honest node while another one makes calls at it, revokes the member while it attacks, and looks at what
 * that cost.
 */
export async function runAttack(
  t: Teardown,
  scene: AttackScene,
  { attack, ...options }: RunOptions & { readonly attack: Attack }
): Promise<Outcome> {
  const { size, calls, paceMs } = options
  const honest = new HonestCalls(t, { home: scene.bob.home, paceMs })
  // What runs for the first time takes longer.
  await honest.make(Math.ceil(calls / 2))
  const before = await takenBy(scene)
  const first = await honest.make(calls)
  const blows = new Blowing(await attack.begin(scene, size))
  const cut = new Cut(scene)
  const phases = await phasesOf(honest, { blows, first, ...options })
  await blows.took()
  const after = await takenBy(scene)
  const cutSeconds = cut.seconds
  let revokedSeconds = 0
  const put = async (): Promise<void> => {
    revokedSeconds = await revoke(scene)
  }
  await honest.during(put, () => blows.next())
  await attack.returned?.(scene, size)
  const returned = attack.returned === undefined ? null : await takenBy(scene)
  const [quiet, busy] = [phases.flatMap((one) => one.quiet), phases.flatMap((one) => one.busy)].map(timesOf) as [
    Times,
    Times
  ]
  const rounds = phases.map((one) => ({ quiet: timesOf(one.quiet), busy: timesOf(one.busy) }))
  return { rounds, quiet, busy, before, after, returned, cutSeconds, revokedSeconds }
}

interface Phases {
  readonly quiet: readonly number[]
  readonly busy: readonly number[]
}

/** Calls without and with the attack, in turn; `first`: those without it that were made before it began. */
async function phasesOf(
  honest: HonestCalls,
  {
    blows,
    first,
    calls,
    rounds
  }: { readonly blows: Blowing; readonly first: readonly number[] } & Pick<RunOptions, 'calls' | 'rounds'>
): Promise<readonly Phases[]> {
  const all: Phases[] = []
  while (all.length < rounds) {
    if (all.length > 0) await blows.rest()
    const quiet = all.length === 0 ? first : await honest.make(calls)
    all.push({ quiet, busy: await honest.make(calls, () => blows.next()) })
  }
  return all
}

/** Revokes the member and waits until both honest nodes know, and her links are gone; how many seconds that took. */
export async function revoke({ victim, bob, eve }: AttackScene): Promise<number> {
  const from = performance.now()
  const { code, stderr } = await victim.cli(['peers', 'revoke', 'eve'])
  if (code !== 0) throw new Error(`peers revoke ended with ${code}: ${stderr}`)
  await untilPeer(bob, 'eve', 'revoked')
  await untilTrue(() => !eve.isLinked, 'her links are gone')
  return secondsSince(from)
}

function secondsSince(from: number): number {
  return Math.round(performance.now() - from) / 1000
}

/** Gives blows, one after the other. */
export class Blowing {
  readonly #blows: Blows
  #underWay: Promise<void> | null = null

  constructor(blows: Blows) {
    this.#blows = blows
  }

  /** One more, unless one is under way. */
  next(): void {
    this.#underWay ??= this.#blows
      .next()
      // She may be cut at any moment; whether anything arrived is asked in the end.
      .catch(() => {})
      .finally(() => {
        this.#underWay = null
      })
  }

  /** Resolves when honest nodes have done what was asked of them. */
  async rest(): Promise<void> {
    await this.#blows.rest?.()
  }

  /** Resolves when the victim has done what it was to do. */
  async took(): Promise<void> {
    await this.#underWay
    await this.#blows.took()
  }
}

/** When the member was cut. */
class Cut {
  seconds: number | null = null

  constructor({ eve }: AttackScene) {
    const { seen } = eve.member
    const [from, before] = [performance.now(), seen.closed.length]
    void seen
      .until(() => seen.closed.length > before)
      .then(() => {
        this.seconds = secondsSince(from)
      })
  }
}
