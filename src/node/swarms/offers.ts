import type { Clock, Timer } from '../../kit/clock.js'
import { asNodeError, NodeError, type ErrorBody, type ErrorCode } from '../../kit/errors.js'
import type { IdSource, NodeId } from '../../kit/ids.js'
import { isRecord } from '../../kit/json.js'
import { shown } from '../../kit/text.js'
import type { EnvelopeHeader } from '../../domain/envelope/codec.js'
import type { CertifiedPower } from '../../domain/routing/effective.js'
import { TaskRejectPayloadSchema, type TaskProposalPayload } from '../../domain/task/negotiation.js'
import { errorBodySchema, offerAcceptSchema } from '../../domain/task/payloads.js'
import type { LeftOut, SwarmRequest } from '../../ports/swarm-api.js'
import { OPERATOR, parseAddress } from '../../domain/card/card.js'
import type { ExchangeTable } from '../messaging/exchange-table.js'
import type { Directory } from '../cards/directory.js'
import type { Outbound } from '../messaging/outbound.js'
import { needsOf, type StageWants } from '../../domain/swarm/expand.js'
import type { Recruit as RecruitedAgent, SwarmInput } from '../../domain/swarm/types.js'
import { isIdempotent } from '../requests/callee/record.js'
import type { SwarmHead } from './store.js'

/** Milliseconds until an agent that does not answer an offer may be asked again. */
const OFFER_TIMEOUT_MS = 5000
/** Milliseconds that leases wait for the first answers: otherwise the nearest agents would take a small swarm whole. */
const RECRUIT_MS = 500

/** An agent that does not take part after it was asked. */
interface Declined {
  readonly agent: string
  readonly leftOut: LeftOut
  /** The error of the items that only this agent may do. */
  readonly error: ErrorBody
}

/** An agent that takes part, and how many runs it takes at once. */
export interface OfferedRecruit {
  readonly agent: string
  readonly slots: number
}

/** Dependencies of offers. */
export interface SwarmOffersDeps {
  readonly clock: Clock
  readonly ids: IdSource
  readonly directory: Directory
  readonly outbound: Outbound
  readonly exchanges: ExchangeTable
  readonly self: NodeId
}

/** The offered work, and the callbacks for the answers. */
export interface Offering {
  readonly request: SwarmRequest
  readonly capabilities: readonly string[]
  readonly itemCount: number
  readonly onBehalfOf?: CertifiedPower
  /** Shown addresses. */
  readonly leftOut: readonly LeftOut[]
  /** All agents asked at first have answered or timed out. Called once. */
  onRecruited(recruits: readonly OfferedRecruit[]): void
  /** A later agent accepts. */
  onAccepted(recruit: OfferedRecruit): void
  /** An agent declines, or its node does. */
  onLeft(declined: Declined): void
}

/** The offers of one swarm: the agents asked to take part, and their answers. */
export class SwarmOffers {
  readonly #deps: SwarmOffersDeps
  readonly #offering: Offering
  /** The state of each offer, by agent. */
  readonly #offered = new Map<string, 'asked' | 'accepted' | 'refused'>()
  /** Agents that accepted while recruiting; null once leases are given. */
  #recruits: OfferedRecruit[] | null = []
  readonly #recruiting: Timer
  #leftOut: readonly LeftOut[]

  constructor(deps: SwarmOffersDeps, offering: Offering) {
    this.#deps = deps
    this.#offering = offering
    this.#leftOut = offering.leftOut
    this.#recruiting = deps.clock.after(RECRUIT_MS, () => this.#recruited())
  }

  /** Does it wait for the first answers? */
  get isRecruiting(): boolean {
    return this.#recruits !== null
  }

  /** Agents that could take part, but do not. */
  get leftOut(): readonly LeftOut[] {
    return this.#leftOut
  }

  /** Offers a part to each agent of the list that was not asked yet. */
  offer(agents: readonly string[]): void {
    for (const agent of agents) if (!this.#offered.has(agent)) void this.#offer(agent)
  }

  /** A peer is gone: its agents may be asked again when it is back. Returns the asked ones. */
  lost(peer: NodeId): string[] {
    return this.#forget((agent) => parseAddress(agent)?.nodeId === peer)
  }

  /** Forgets agents that no longer exist, and returns the asked ones. If they come back, they are asked anew. */
  removed(known: ReadonlySet<string>): string[] {
    return this.#forget((agent) => !known.has(agent))
  }

  /** The swarm has ended. */
  stop(): void {
    this.#recruits = null
    this.#deps.clock.clear(this.#recruiting)
  }

  #forget(isOut: (agent: string) => boolean): string[] {
    const out = [...this.#offered.keys()].filter(isOut)
    for (const agent of out) this.#offered.delete(agent)
    this.#recruits = this.#recruits?.filter((one) => !out.includes(one.agent)) ?? null
    return out
  }

  async #offer(agent: string): Promise<void> {
    const recipient = parseAddress(agent)
    if (recipient === null) return
    this.#offered.set(agent, 'asked')
    const { clock, outbound, ids, exchanges, self } = this.#deps
    const { request, capabilities, onBehalfOf } = this.#offering
    const thread = { sender: { agentId: OPERATOR, nodeId: self }, recipient, correlationId: ids.next('thr') }
    const timer = clock.after(OFFER_TIMEOUT_MS, () => this.#askAgain(agent))
    const handler = (header: EnvelopeHeader, answer: unknown): void => {
      clock.clear(timer)
      exchanges.end(thread)
      this.#answered(agent, header, answer)
    }
    try {
      await outbound.send({
        ...thread,
        type: 'task-proposal',
        capability: capabilities[0] ?? request.capability,
        payload: this.#proposal(),
        ...justified(request),
        ...(onBehalfOf === undefined ? {} : { onBehalfOf }),
        replies: { ttlMs: OFFER_TIMEOUT_MS, handler }
      })
    } catch (error) {
      // The timer runs on: the agent is asked again after it.
      this.#leaveOut({ agent: this.#deps.directory.shownAddress(agent), rule: asNodeError(error).message })
    }
  }

  #proposal(): TaskProposalPayload {
    const { request, capabilities, itemCount } = this.#offering
    return {
      taskDescription: request.goal,
      requiredCapabilities: [...capabilities],
      estimatedComplexity: itemCount <= 10 ? 'simple' : itemCount <= 100 ? 'medium' : 'complex',
      deadlineMs: OFFER_TIMEOUT_MS
    }
  }

  #askAgain(agent: string): void {
    if (this.#offered.get(agent) === 'asked') this.#offered.delete(agent)
  }

  #answered(agent: string, header: EnvelopeHeader, payload: unknown): void {
    if (this.#offered.get(agent) !== 'asked') return
    const accept = header.type === 'task-accept' ? offerAcceptSchema.safeParse(payload) : null
    if (accept?.success === true) this.#accepted({ agent, slots: accept.data.slots })
    else this.#declined(agent, payload)
    // All answers are here: no need to wait longer.
    if ([...this.#offered.values()].every((state) => state !== 'asked')) this.#recruited()
  }

  #accepted(recruit: OfferedRecruit): void {
    this.#offered.set(recruit.agent, 'accepted')
    const name = this.#deps.directory.shownAddress(recruit.agent)
    this.#leftOut = this.#leftOut.filter((one) => one.agent !== name)
    if (this.#recruits === null) this.#offering.onAccepted(recruit)
    else this.#recruits.push(recruit)
  }

  #declined(agent: string, payload: unknown): void {
    const name = this.#deps.directory.shownAddress(agent)
    const { code, rule } = reasonOf(payload)
    const leftOut = { agent: name, rule, ...(code === null ? {} : { code }) }
    this.#offered.set(agent, 'refused')
    this.#leaveOut(leftOut)
    const message = `${name} does not take part: ${rule}`
    this.#offering.onLeft({
      agent,
      leftOut,
      error: new NodeError(code ?? 'NO_CAPABLE_AGENT', message, { data: { rule } }).toBody()
    })
  }

  #recruited(): void {
    const recruits = this.#recruits
    if (recruits === null) return
    this.stop()
    this.#offering.onRecruited(recruits)
  }

  #leaveOut(left: LeftOut): void {
    this.#leftOut = [...this.#leftOut.filter((one) => one.agent !== left.agent), left]
  }
}

/** The reason of a declined offer: the agent's (no code), or its node's with code and rule. */
function reasonOf(payload: unknown): { readonly code: ErrorCode | null; readonly rule: string } {
  const reject = TaskRejectPayloadSchema.safeParse(payload)
  if (reject.success) return { code: null, rule: `rejected: ${shown(reject.data.rejectionReason)}` }
  const error = errorBodySchema.safeParse(payload)
  if (!error.success) return { code: null, rule: 'refused by its node' }
  const { code, message, data } = error.data
  return { code, rule: shown(isRecord(data) && typeof data['rule'] === 'string' ? data['rule'] : message) }
}

/** The justification of a swarm's messages, when it has one. */
export function justified(request: Pick<SwarmRequest, 'justification'>): { justification?: string } {
  return request.justification === undefined ? {} : { justification: request.justification }
}

/** The swarm to recruit for, and its callbacks. */
export interface Recruiting {
  readonly head: SwarmHead
  onInput(input: SwarmInput): void
  /** One more agent is left out. */
  onLeftOut(leftOut: LeftOut): void
}

/** The offers of one swarm: one kind of offer for each kind of agent that it needs. */
export class Recruiter {
  readonly #deps: SwarmOffersDeps
  readonly #recruiting: Recruiting
  readonly #wants: readonly StageWants[]
  readonly #offers: readonly SwarmOffers[]

  constructor(deps: SwarmOffersDeps, recruiting: Recruiting) {
    this.#deps = deps
    this.#recruiting = recruiting
    this.#wants = needsOf(recruiting.head.stages).wants
    this.#offers = this.#wants.map((wants, need) => this.#create(wants, need))
  }

  #create({ capability, further = [] }: StageWants, need: number): SwarmOffers {
    const { head, onInput } = this.#recruiting
    const { request, onBehalfOf, itemCount } = head
    const known = ({ agent, slots }: OfferedRecruit): RecruitedAgent => {
      return { agent, slots, need, isRepeatable: this.#isRepeatable(agent, capability) }
    }
    return new SwarmOffers(this.#deps, {
      request,
      capabilities: [capability, ...further],
      ...(onBehalfOf === undefined ? {} : { onBehalfOf }),
      itemCount,
      leftOut: head.leftOut.filter((one) => one.capability === undefined || one.capability === capability),
      onRecruited: (recruits) => onInput({ type: 'recruited', agents: recruits.map(known) }),
      onAccepted: (recruit) => onInput({ type: 'accepted', ...known(recruit) }),
      onLeft: (declined) => this.#left(declined, need)
    })
  }

  /** May an item that an agent began be given to another? */
  #isRepeatable(agent: string, capability: string): boolean {
    const address = parseAddress(agent)
    const { allowRepeat } = this.#recruiting.head.request
    return allowRepeat === true || (address !== null && isIdempotent(this.#deps.directory, address, capability))
  }

  #left({ agent, leftOut, error }: Declined, need: number): void {
    const { onInput, onLeftOut } = this.#recruiting
    onLeftOut(this.#wants.length === 1 ? leftOut : { ...leftOut, capability: this.#wants[need]?.capability ?? '' })
    onInput({ type: 'left', agent, reason: leftOut.rule, error, need })
  }

  /** Does any offer wait for the first answers? */
  get isRecruiting(): boolean {
    return this.#offers.some((one) => one.isRecruiting)
  }

  /** Agents that could take part, but do not. */
  get leftOut(): readonly LeftOut[] {
    const all = this.#offers.flatMap((offers, need) => {
      const capability = this.#wants[need]?.capability
      return offers.leftOut.map((one) =>
        this.#wants.length === 1 || capability === undefined ? one : { ...one, capability }
      )
    })
    return [...new Map(all.map((one) => [`${one.capability ?? ''} ${one.agent}`, one])).values()]
  }

  /** Offers a part to every agent that was not asked yet, by need. */
  offer(allowed: readonly (readonly string[])[]): void {
    for (const [need, offers] of this.#offers.entries()) offers.offer(allowed[need] ?? [])
  }

  /** A peer is gone: its agents may be asked again when it is back. Returns the asked ones. */
  lost(peer: NodeId): string[] {
    return [...new Set(this.#offers.flatMap((offers) => offers.lost(peer)))]
  }

  /** Drops asked agents that no longer exist. `known`: existing agents, by need. */
  dropRemoved(known: readonly ReadonlySet<string>[]): void {
    const reason = 'it is no longer there'
    for (const [need, offers] of this.#offers.entries())
      for (const agent of offers.removed(known[need] ?? new Set())) {
        const message = `${this.#deps.directory.shownAddress(agent)} does not take part: ${reason}`
        this.#recruiting.onInput({
          type: 'left',
          agent,
          reason,
          error: new NodeError('AGENT_NOT_FOUND', message).toBody(),
          need
        })
      }
  }

  /** The swarm has ended. */
  stop(): void {
    for (const offers of this.#offers) offers.stop()
  }
}
