import type { Clock } from '../kit/clock.js'
import { NodeError } from '../kit/errors.js'
import type { Unsubscribe } from '../kit/events.js'
import { isKeyText } from '../kit/ids.js'
import type { NodeId } from '../kit/ids.js'
import { shown } from '../kit/text.js'
import { ANYBODY } from '../domain/policy/rule.js'
import type { PolicyRule } from '../domain/policy/rule.js'
import { routingPolicy } from '../domain/routing/policy-verdict.js'
import type { MemberLog } from '../ports/mesh.js'
import type { Problem } from '../ports/node-api.js'
import type { PolicyWarning } from '../ports/policy-api.js'
import type { PolicySource, PolicyState } from '../ports/policy.js'
import type { Telemetry } from '../ports/telemetry.js'
import type { Directory } from './directory.js'
import type { NodeEvents } from './events.js'
import type { Held } from './inbox.js'
import type { Router } from './router.js'

/** Names without a node that one event lists. */
const LISTED = 10

/** What keeping the policy needs. */
export interface PolicyBookParts {
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly log: Pick<MemberLog, 'onChange'>
  readonly policy: PolicySource
  readonly router: Router
  readonly directory: Directory
  readonly events: NodeEvents
  readonly self: NodeId
}

/** The policy in force: read from its file, asked by the router, and written when a person wants a decision remembered. */
export class PolicyBook {
  readonly #parts: PolicyBookParts
  #stop: Unsubscribe = () => {}
  /** Names without a node that were told of. */
  #told: ReadonlySet<string> = new Set()

  constructor(parts: PolicyBookParts) {
    this.#parts = parts
  }

  /** Puts the rules in force, and those of each change. Tells of names in them that no node has, also when the members change. */
  start(onChange: () => void): void {
    const { policy, events, log } = this.#parts
    this.#use(policy.state())
    this.#stop = log.onChange(() => this.#tellUnknown())
    policy.watch((state) => {
      this.#use(state)
      const { rules, fault } = state
      events.add('policy', fault === null ? 'the policy was read' : 'the policy file cannot be used', { rules: rules.length, fault })
      onChange()
    })
  }

  /** The rules in force. */
  state(): PolicyState {
    return this.#parts.policy.state()
  }

  /** The name of the file, as verdicts tell it. */
  get fileName(): string {
    return nameOf(this.state().file)
  }

  /** Names of nodes in the rules that no node has now: what is said of them is said of nobody. A key is never one of them. */
  warnings(): PolicyWarning[] {
    return this.named().flatMap(({ line, name, nodeId }) => (nodeId === null ? [{ line, name }] : []))
  }

  /** Every name of a node in the rules, with the node that has it now. Keys are none. */
  named(): (PolicyWarning & { readonly nodeId: NodeId | null })[] {
    const { directory } = this.#parts
    return this.state().rules.flatMap(({ line, from, to }) =>
      [...new Set([...(from.node ?? []), ...(to.node ?? [])])]
        .filter((name) => !isKeyText(name))
        .map((name) => ({ line, name, nodeId: directory.nodeOfName(name) }))
    )
  }

  /** What is wrong with the file or with names in it, for `status`. */
  problems(): Problem[] {
    const { file, fault } = this.state()
    const problems: Problem[] = []
    if (fault !== null) {
      const place = fault.line === null ? file : `${file}:${fault.line}`
      const message = `${place}: ${shown(fault.reason, 512)}; the last good version stays in force`
      problems.push({ code: 'CONFIG_INVALID', message, next: 'a2a-node policy show' })
    }
    const [first, ...others] = this.warnings()
    if (first !== undefined) {
      const more = others.length === 0 ? '' : ` (and ${others.length} more like it)`
      const message = `${file}:${first.line}: no node is called "${shown(first.name, 64)}"${more}: the rule is for nobody of that name`
      problems.push({ code: 'PEER_NOT_FOUND', message, next: 'a2a-node policy show' })
    }
    return problems
  }

  /**
   * Writes a decision into the policy file, in front of the rule that asked: for exactly this sender at its tier, this agent
   * and this capability, to allow it also its side effect. `askingLine` tells the line of that rule now; null when no rule asks any more, then nothing is
   * written. @throws NodeError USAGE, CONFIG_INVALID, DISK_FULL, NO_PERMISSION.
   */
  async remember(
    { incoming, question }: Held,
    choice: { readonly decision: 'allow' | 'deny'; readonly note: string; askingLine(): number | null }
  ): Promise<void> {
    const { policy, clock, directory, self } = this.#parts
    const { sender, recipient } = incoming
    const { capability, sideEffect } = question
    const isAllowed = choice.decision === 'allow'
    // Without a capability the rule would be for all of them.
    if (capability === null)
      throw new NodeError('USAGE', 'a message that names no capability cannot be remembered; write the rule yourself')
    // A rule that allows asks for no reason, and this was seen with one.
    if (isAllowed && question.justification !== null && question.sender.tier > question.target.tier)
      throw new NodeError(
        'USAGE',
        'what is allowed for its justification cannot be remembered; allow it this once, or write the rule yourself'
      )
    await policy.refresh()
    const beforeLine = choice.askingLine()
    if (beforeLine === null) return
    const rule: Omit<PolicyRule, 'line'> = {
      from: { ...ANYBODY, node: [sender.nodeId], agent: [sender.agentId], tier: [(question.certified ?? question.sender).tier] },
      to: { ...ANYBODY, node: [self], agent: [recipient.agentId] },
      capability: [capability],
      // What comes another way, or may do more one day, is not what was allowed.
      type: isAllowed ? [incoming.header.type] : null,
      sideEffect: isAllowed && sideEffect !== null ? [sideEffect] : null,
      decision: choice.decision
    }
    const day = new Date(clock.now()).toISOString().slice(0, 10)
    await policy.insert(rule, { beforeLine, note: `${day} ${directory.shownAddress(sender)}: ${choice.note}` })
  }

  /** Watches the file no longer. */
  close(): void {
    this.#stop()
    this.#parts.policy.close()
  }

  #tellUnknown(): void {
    const { events, telemetry } = this.#parts
    const warnings = this.warnings()
    const news = warnings.filter((one) => !this.#told.has(one.name))
    this.#told = new Set(warnings.map((one) => one.name))
    if (news.length === 0) return
    const names = news.slice(0, LISTED).map(({ line, name }) => `${this.fileName}:${line}: ${shown(name, 64)}`)
    const data = { names, more: news.length - names.length }
    events.add('policy', 'rules of the policy name nodes that nobody is called', data)
    telemetry.log('warn', 'rules of the policy name nodes that nobody is called', data)
  }

  #use({ rules, file }: PolicyState): void {
    const { router, directory } = this.#parts
    const nodeOfName = (name: string): NodeId | null => directory.nodeOfName(name)
    router.usePolicy(rules.length === 0 ? null : routingPolicy(rules, { file: nameOf(file), nodeOfName }))
    this.#tellUnknown()
  }
}

function nameOf(file: string): string {
  return file.slice(file.lastIndexOf('/') + 1)
}
