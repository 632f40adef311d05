import type { Clock } from '../../kit/clock.js'
import { NodeError } from '../../kit/errors.js'
import type { Unsubscribe } from '../../kit/events.js'
import { bytesToText, isKeyText, shortId, utf8 } from '../../kit/ids.js'
import type { NodeId } from '../../kit/ids.js'
import { canonicalJson } from '../../kit/json.js'
import type { Hash } from '../../kit/sign.js'
import { nearest, shown } from '../../kit/text.js'
import { ANYBODY } from '../../domain/policy/rule.js'
import type { Trust } from '../../domain/membership/types.js'
import type { PolicyRule } from '../../domain/policy/rule.js'
import { routingPolicy } from '../../domain/routing/policy-verdict.js'
import type { MemberLog } from '../../ports/mesh.js'
import type { Problem } from '../../ports/node-api.js'
import type { NamedInPolicy, PolicyWarning } from '../../ports/policy-api.js'
import type { PolicySource, PolicyState, WrittenRule } from '../../ports/policy.js'
import type { Telemetry } from '../../ports/telemetry.js'
import type { Directory } from '../cards/directory.js'
import type { NodeEvents } from '../observe/events.js'
import type { AwaitingApproval } from '../messaging/inbound-message.js'
import type { AccessControl } from './access-control.js'
import type { PeerTrust } from './peer-trust.js'

/** The most names in one event about names without a node. */
const LISTED = 10
/** Characters of z32 in the id of a rule, from a hash of its content. */
const ID_LENGTH = 6

/** Dependencies of {@link PolicyStore}. */
export interface PolicyStoreDeps {
  readonly clock: Clock
  readonly hash: Hash
  readonly telemetry: Telemetry
  readonly log: Pick<MemberLog, 'onChange'>
  readonly policy: PolicySource
  readonly accessControl: AccessControl
  readonly directory: Directory
  readonly events: NodeEvents
  readonly self: NodeId
  readonly trust: Pick<PeerTrust, 'of'>
}

/** The policy in force: read from its file, used by the rules, and extended when a decision is to be remembered. */
export class PolicyStore {
  readonly #deps: PolicyStoreDeps
  #stop: Unsubscribe = () => {}
  /** Reported names: without a node, or with several. */
  #shown: ReadonlySet<string> = new Set()

  constructor(deps: PolicyStoreDeps) {
    this.#deps = deps
  }

  /**
   * Applies the rules, again after each change. Reports names in them that no node has, also when the members change.
   */
  start(onChange: () => void): void {
    const { policy, events, log } = this.#deps
    this.#use(policy.state())
    this.#stop = log.onChange(() => this.#tellUnknown())
    policy.watch((state) => {
      this.#use(state)
      const { rules, faults } = state
      const data = {
        rules: rules.length,
        fault: faults?.list[0] ?? null,
        faults: faults === null ? 0 : faults.list.length + faults.more
      }
      events.add('policy', faults === null ? 'the policy was read' : 'the policy file cannot be used', data)
      onChange()
    })
  }

  /** The rules in force. */
  state(): PolicyState {
    return this.#deps.policy.state()
  }

  /** The name of the file, as in verdicts. */
  get fileName(): string {
    return nameOf(this.state().file)
  }

  /** The ids of the rules, in their order: see {@link PolicyRuleInfo.id}. Equal rules are numbered: `#k2m4qa-2`. */
  ids(): string[] {
    const seen = new Map<string, number>()
    return this.state().rules.map(({ line: _line, name, ...rule }) => {
      if (name !== undefined) return name
      const id = `#${bytesToText(this.#deps.hash(utf8(canonicalJson(rule)))).slice(0, ID_LENGTH)}`
      const count = (seen.get(id) ?? 0) + 1
      seen.set(id, count)
      return count === 1 ? id : `${id}-${count}`
    })
  }

  /** Names of nodes in the rules that match no node now, or several. A whole key never counts. */
  warnings(): PolicyWarning[] {
    const { directory } = this.#deps
    return this.named().flatMap(({ line, name, nodes }) => {
      if (nodes.length === 1) return []
      const names = nodes.length > 0 ? [] : directory.nodes().map(({ id }) => directory.ref(id).name)
      const candidates = nodes.map((id) => `${directory.ref(id).name} (${shortId(id)})`)
      const meant = { name, candidates, nearest: nearest(name, names) }
      return [{ line, ...meant, message: warningText(meant, 0) }]
    })
  }

  /** Every node name in the rules, with the nodes that it may mean now. Keys do not count. */
  named(): (NamedInPolicy & { readonly nodes: readonly NodeId[] })[] {
    const { directory } = this.#deps
    return this.state().rules.flatMap(({ line, from, to }) =>
      [...new Set([...(from.node ?? []), ...(to.node ?? [])])]
        .filter((name) => !isKeyText(name))
        .map((name) => ({ line, name, nodes: directory.nodesOfName(name) }))
    )
  }

  /** The problems of the file and of names in it, for `status`. */
  problems(): Problem[] {
    const { file, faults } = this.state()
    const problems: Problem[] = []
    const [fault] = faults?.list ?? []
    if (faults !== null && fault !== undefined) {
      const place = fault.line === null ? file : `${file}:${fault.line}`
      const reason = `${shown(fault.reason, 512)}${andMore(faults.list.length - 1 + faults.more)}`
      const message = `${place}: ${reason}; the last good version stays in force`
      problems.push({ code: 'CONFIG_INVALID', message, next: 'a2a-node policy show' })
    }
    const [first, ...others] = this.warnings()
    if (first !== undefined) {
      const message = `${file}:${first.line}: ${warningText(first, others.length)}`
      problems.push({
        code: first.candidates.length > 0 ? 'AMBIGUOUS_NAME' : 'PEER_NOT_FOUND',
        message,
        next: 'a2a-node policy show'
      })
    }
    return problems
  }

  /**
   * Writes a decision into the policy file, before the rule that asked: for exactly this sender at its tier, this agent
   * and this capability; a rule that allows also names the side effect. `askingLine` returns the present line of that
   * rule; null when no rule asks any more, then nothing is written. @throws NodeError USAGE, CONFIG_INVALID, DISK_FULL,
   * NO_PERMISSION.
   */
  async remember(
    { incoming, question }: AwaitingApproval,
    choice: { readonly decision: 'allow' | 'deny'; readonly note: string; askingLine(): number | null }
  ): Promise<WrittenRule | null> {
    const { policy, clock, directory, self } = this.#deps
    const { sender, recipient } = incoming
    const { capability, sideEffect } = question
    const isAllowed = choice.decision === 'allow'
    // Without a capability the rule would cover all of them.
    if (capability === null)
      throw new NodeError('USAGE', 'a message that names no capability cannot be remembered; write the rule yourself')
    // A rule that allows needs no justification, but this message was approved with one.
    if (isAllowed && question.justification !== null && question.sender.tier > question.target.tier)
      throw new NodeError(
        'USAGE',
        'what is allowed for its justification cannot be remembered; allow it this once, or write the rule yourself'
      )
    await policy.refresh()
    const beforeLine = choice.askingLine()
    if (beforeLine === null) return null
    const rule: Omit<PolicyRule, 'line'> = {
      from: {
        ...ANYBODY,
        node: [sender.nodeId],
        agent: [sender.agentId],
        tier: [(question.certified ?? question.sender).tier]
      },
      to: { ...ANYBODY, node: [self], agent: [recipient.agentId] },
      capability: [capability],
      // A message of another type, or a later stronger side effect, was not approved.
      type: isAllowed ? [incoming.header.type] : null,
      sideEffect: isAllowed && sideEffect !== null ? [sideEffect] : null,
      decision: choice.decision
    }
    const day = new Date(clock.now()).toISOString().slice(0, 10)
    return await policy.insert(rule, { beforeLine, note: `${day} ${directory.shownAddress(sender)}: ${choice.note}` })
  }

  /** Stops watching the file. */
  close(): void {
    this.#stop()
    this.#deps.policy.close()
  }

  #tellUnknown(): void {
    const { events, telemetry } = this.#deps
    const warnings = this.warnings()
    const change = warnings.filter((one) => !this.#shown.has(keyOf(one)))
    this.#shown = new Set(warnings.map(keyOf))
    if (change.length === 0) return
    for (const isAmbiguous of [false, true]) {
      const printed = change.filter(({ candidates }) => candidates.length > 0 === isAmbiguous)
      if (printed.length === 0) continue
      const names = printed.slice(0, LISTED).map(({ line, name }) => `${this.fileName}:${line}: ${shown(name, 64)}`)
      const data = { names, more: printed.length - names.length }
      const message = isAmbiguous
        ? 'rules of the policy name nodes that are several'
        : 'rules of the policy name nodes that nobody is called'
      events.add('policy', message, data)
      telemetry.log('warn', message, data)
    }
  }

  #use({ rules, file }: PolicyState): void {
    const { accessControl, directory, trust } = this.#deps
    const nodesOfName = (name: string): readonly NodeId[] => directory.nodesOfName(name)
    const trustOf = (node: NodeId): Trust => trust.of(node)
    const places = { file: nameOf(file), nodesOfName, trustOf }
    accessControl.usePolicy(rules.length === 0 ? null : routingPolicy(rules, places))
    this.#tellUnknown()
  }
}

/** Key of a warning: a name is reported again when its problem changes. */
function keyOf({ name, candidates }: PolicyWarning): string {
  return `${candidates.length > 0} ${name}`
}

function warningText(
  { name, candidates, nearest: near }: Omit<PolicyWarning, 'line' | 'message'>,
  others: number
): string {
  const quoted = `"${shown(name, 64)}"`
  if (candidates.length > 0) {
    const which = `${quoted} may mean ${candidates.slice(0, LISTED).join(' or ')}${andMore(others, ' like it')}`
    return `${which}: the rule denies and asks about each, and allows none of them; write more of the id`
  }
  const hint = near.length === 0 ? '' : ` (did you mean ${near.join(' or ')}?)`
  return `no node is called ${quoted}${hint}${andMore(others, ' like it')}: the rule is for nobody of that name`
}

function andMore(count: number, what = ''): string {
  return count === 0 ? '' : ` (and ${count} more${what})`
}

function nameOf(file: string): string {
  return file.slice(file.lastIndexOf('/') + 1)
}
