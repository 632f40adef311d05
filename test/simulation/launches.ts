import { asNodeError } from '../../src/kit/errors.js'
import { canonicalJson } from '../../src/kit/json.js'
import type { SwarmPlan } from '../../src/node/swarms/launcher.js'
import type { SwarmView } from '../../src/node/swarms/finished-swarm.js'
import type { Place, PlaceParts } from './place.js'

/** What people launch, once or, with a key, again and again. */
interface Plan {
  readonly number: number
  readonly from: Place
  readonly request: SwarmPlan
  /** The disk of the node that it was launched at first. */
  readonly losses: number
  /** The swarm that its node said it is; null until then. */
  id: string | null
}

/** The swarms of a world: launches, cancels, and judges how they ended. */
export class Launches {
  readonly #parts: Pick<PlaceParts, 'random' | 'trace' | 'witness'>
  readonly #plans: Plan[] = []
  readonly #views = new Map<Plan, SwarmView | null>()
  #count = 0

  constructor(parts: Pick<PlaceParts, 'random' | 'trace' | 'witness'>) {
    this.#parts = parts
  }

  /** Launches so far, also those that were refused. */
  get count(): number {
    return this.#count
  }

  /** Something is launched: anew, or by the key of before. */
  launch(from: Place): void {
    const { random } = this.#parts
    if (from.node === null) return
    const known = random.pick(
      this.#plans.filter((plan) => plan.request.idempotencyKey !== undefined && isOn(plan, from))
    )
    const isAgain = known !== null && random.is(0.5)
    const plan =
      isAgain && random.is(0.7) ? known : this.#plan(from, isAgain ? known.request.idempotencyKey : undefined)
    if (plan !== known) this.#plans.push(plan)
    this.#launch(plan)
    if (plan.request.idempotencyKey !== undefined && random.is(0.2)) this.#launch(plan)
  }

  /** `key`: one that another plan has. */
  #plan(from: Place, key: string | undefined): Plan {
    const { random } = this.#parts
    const number = this.#plans.length + 1
    const [agentId, kind] = [random.is(0.7) ? 'slow' : 'fast', random.is(0.5) ? 'again' : 'once']
    const allowRepeat = random.is(0.15)
    const input = { ask: number, mayRepeat: allowRepeat || kind === 'again' }
    const items = Array.from({ length: random.int(1, 6) }, (_, index) => ({ item: `item ${index}`, input }))
    const request: SwarmPlan = {
      goal: `plan ${number}`,
      capability: `${agentId}.${kind}`,
      ...(random.is(0.75) ? { strategy: 'map', items } : { strategy: 'each', input }),
      retries: random.int(0, 2),
      allowRepeat,
      ...(random.is(0.2) ? { maxParallel: random.int(1, 2) } : {}),
      ...(random.is(0.15) ? { deadlineMs: random.int(1, 20_000) } : {}),
      ...(key !== undefined || random.is(0.6) ? { idempotencyKey: key ?? `key ${number}` } : {})
    }
    return { number, from, request, losses: from.losses, id: null }
  }

  #launch(plan: Plan): void {
    const { trace } = this.#parts
    const { from, request } = plan
    const { node, life } = from
    if (node === null) return
    const name = `launch ${++this.#count}`
    const { capability, strategy, idempotencyKey = 'no key' } = request
    trace.add(from.name, `${name}: plan ${plan.number}, ${strategy} ${capability}, ${idempotencyKey}`)
    const swarms = node.core.swarms
    swarms
      .launch(request, undefined, (run) => from.follow(run.head.id, (listener) => run.follow(listener)))
      .then(
        (id) => {
          if (life !== from.life) return
          trace.add(from.name, `${name} is ${id}`)
          this.#launched(plan, id)
        },
        (error: unknown) => {
          if (life !== from.life) return
          const { code } = asNodeError(error)
          trace.add(from.name, `${name} is refused: ${code}`)
          if (code === 'CONFLICT' && !this.#isTaken(plan))
            this.#parts.witness.fault(`the key of plan ${plan.number} is nobody else's`)
        }
      )
  }

  #launched(plan: Plan, id: string): void {
    const { witness } = this.#parts
    const { from, number } = plan
    if (plan.id !== null && plan.id !== id) witness.fault(`plan ${number} is ${plan.id}, and ${id}`)
    const other = this.#plans.find((one) => one !== plan && one.id === id)
    if (other !== undefined) witness.fault(`${id} is plan ${other.number}, and plan ${number}`)
    if (witness.swarms.head(from.name, id) === null) witness.fault(`${id} is launched before that is durable`)
    plan.id = id
  }

  /** Does another plan have its key? */
  #isTaken(plan: Plan): boolean {
    const { idempotencyKey } = plan.request
    return this.#plans.some(
      (one) => one !== plan && isOn(one, plan.from) && one.request.idempotencyKey === idempotencyKey
    )
  }

  /** A swarm is canceled, where it was launched or elsewhere. */
  cancel(places: readonly Place[]): void {
    const plan = this.#parts.random.pick(this.#plans.filter(({ id, from }) => id !== null && from.node !== null))
    if (plan === null || plan.id === null || !isOn(plan, plan.from)) return
    const by = (this.#parts.random.is(0.3) ? this.#parts.random.pick(places) : null) ?? plan.from
    this.#parts.trace.add(by.name, `cancels ${plan.id}`)
    by.node?.core.swarms.cancel(plan.id).catch((error: unknown) => {
      this.#parts.trace.add(by.name, `${plan.id} is not canceled: ${asNodeError(error).code}`)
    })
  }

  /** Has every swarm ended? */
  isOver(places: readonly Place[]): boolean {
    const { swarms } = this.#parts.witness
    return places.every(({ name }) => swarms.heads(name).every(({ end, id }) => end !== null || swarms.isBereft(id)))
  }

  /** Asks the nodes for the swarms that they said they have. */
  look(): void {
    for (const plan of this.#plans) {
      const { id, from } = plan
      if (id === null || !isOn(plan, from)) continue
      this.#views.set(plan, null)
      from.node?.core.swarms.find(id).then(
        (view) => this.#views.set(plan, view),
        (error: unknown) => this.#parts.witness.fault(`${id} is not found at ${from.name}: ${String(error)}`)
      )
    }
  }

  /** Each is there and has ended, as its disk says. */
  judge(): void {
    const { witness } = this.#parts
    for (const [{ id, from }, view] of this.#views) {
      if (id === null) continue
      const head = witness.swarms.head(from.name, id)
      const end = head?.end ?? null
      if (end === null && witness.swarms.isBereft(id)) continue
      if (end === null || view === null) {
        witness.fault(`${id} has no end at ${from.name} at the end`)
        continue
      }
      const { status, counts } = view.info()
      if (status !== end.status || canonicalJson(counts) !== canonicalJson(end.counts))
        witness.fault(`${id} is ${status}, and was ${end.status}`)
      const rows = [...witness.swarms.rows(from.name, id)].sort((a, b) => a.index - b.index)
      const isSame = canonicalJson(view.results().results) === canonicalJson(rows.map(({ row }) => row))
      if (!isSame) witness.fault(`${id} shows other outcomes than its disk has`)
    }
  }
}

/** Does the node still have the disk on which the plan was launched? */
function isOn({ from, losses }: Plan, place: Place): boolean {
  return from === place && losses === place.losses
}
