import type { Clock } from '../../kit/clock.js'
import { NodeError } from '../../kit/errors.js'
import type { NodeId } from '../../kit/ids.js'
import { type AgentAddress, OPERATOR } from '../../domain/card/card.js'
import { askedWork } from '../../domain/policy/requested-work.js'
import type { RoutingQuestion } from '../../domain/routing/decide.js'
import { type CallerAuthority, confinement } from '../../domain/routing/effective.js'
import type { AgentHost } from '../agents/agent-host.js'
import type { InProcessAgents } from '../agents/in-process-agents.js'
import { isIdempotent } from '../requests/callee/record.js'
import type { Directory } from '../cards/directory.js'
import type { Subscriptions } from '../messaging/subscriptions.js'
import type { AccessControl } from '../policy/access-control.js'
import type { Traffic } from '../observe/traffic.js'
import type { HereRun } from '../requests/callee/in-flight.js'
import type { Executor } from '../requests/callee/executor.js'

/** What doing work without a message needs. */
export interface DirectDeps {
  readonly self: NodeId
  readonly clock: Clock
  readonly directory: Directory
  readonly accessControl: AccessControl
  readonly traffic: Traffic
  readonly subscriptions: Pick<Subscriptions, 'isListening'>
  readonly inProcess: Pick<InProcessAgents, 'isInPerson'>
  readonly agents: Pick<AgentHost, 'load'>
  readonly executor: Pick<Executor, 'here'>
}

/** Who is asked for what, in whose name. */
export interface DirectQuestion {
  readonly target: AgentAddress
  readonly capability: string
  readonly by: CallerAuthority
  readonly justification?: string | undefined
}

/** What an agent is given, and by which names its work is known. */
export interface DirectWork {
  readonly input: unknown
  readonly names: { readonly requestId: string; readonly taskId: string }
}

/** That work may begin directly: true in the turn in which it was found. */
export interface DirectPath {
  readonly target: AgentAddress
  readonly capability: string
  readonly question: RoutingQuestion
  /** The rule that lets it pass. */
  readonly rule: string
  /** Monotonic milliseconds: when it was asked for, and when the rules had decided. */
  readonly since: number
  readonly at: number
}

/**
 * Work of an agent of this node for somebody who waits in this process: by the rules, the checks and the places that a request has,
 * counted and on record as one, but no message is written, kept and answered. Only for what may be repeated, while its agent has a
 * free place and nobody has to be asked: all else goes as a request.
 */
export class DirectAnswers {
  readonly #deps: DirectDeps

  constructor(deps: DirectDeps) {
    this.#deps = deps
  }

  /** How it may begin, as things are now. Null: it has to go as a request, which is told what speaks against it. */
  path(asking: DirectQuestion): DirectPath | null {
    const { clock, accessControl } = this.#deps
    const since = clock.monotonic()
    const question = this.#question(asking)
    const rule = question === null ? null : accessControl.allows(question)
    if (question === null || rule === null) return null
    const { target, capability } = asking
    return { target, capability, question, rule, since, at: clock.monotonic() }
  }

  /** Begins it. Null: it has to go as a request after all, e.g. because of its input. */
  begin({ target, capability, question, rule, since, at }: DirectPath, { input, names }: DirectWork): HereRun | null {
    const { accessControl, traffic, executor } = this.#deps
    const run = executor.here({ recipient: target, capability, input, names })
    if (run instanceof NodeError) return null
    const { sender, target: party, type } = question
    const header = { id: names.requestId, sender: sender.address, recipient: party.address, type }
    const passage = { peer: null, header, from: sender.tier, to: party.tier, rule, since, at }
    accessControl.passed(at - since)
    traffic.received(header, since)
    traffic.delivered(passage)
    traffic.sent(passage, 'local')
    return run
  }

  /** What the rules are asked; null for what goes as a request whatever they say. */
  #question({ target, capability, by, justification }: DirectQuestion): RoutingQuestion | null {
    const { self, directory, subscriptions, inProcess, agents } = this.#deps
    if (target.nodeId !== self || inProcess.isInPerson(target.agentId) || subscriptions.isListening(target.agentId)) return null
    const { running, waiting, slots } = agents.load(target.agentId)
    if (running + waiting >= slots || !isIdempotent(directory, target, capability)) return null
    const operator = { agentId: OPERATOR, nodeId: self }
    const [sender, certified, party] = [directory.party(operator, by), directory.party(operator), directory.party(target)]
    if (sender === null || certified === null || party === null) return null
    const asked = askedWork(directory.card(target), capability)
    const question: RoutingQuestion = {
      sender,
      certified,
      target: party,
      type: 'request',
      capability: asked.capability,
      sideEffect: asked.sideEffect,
      justification: justification ?? null,
      isReply: false,
      isArriving: true
    }
    return by.capabilities === undefined ? question : { ...question, ...confinement(by) }
  }
}
