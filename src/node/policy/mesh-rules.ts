import { NodeError } from '../../kit/errors.js'
import { canonicalJson } from '../../kit/json.js'
import { shown } from '../../kit/text.js'
import { addressText, parseAddress } from '../../domain/card/card.js'
import type { MeshSettings, SettingsRecord } from '../../domain/membership/types.js'
import type { RoutingRules } from '../../domain/routing/decide.js'
import { tierText } from '../../domain/routing/tier.js'
import type { MemberLog } from '../../ports/mesh.js'
import type { Calls, MeshSettingsInfo } from '../../ports/node-api.js'
import type { Directory } from '../cards/directory.js'
import type { NodeDeps } from '../dependencies.js'
import type { AccessControl } from './access-control.js'

/** Dependencies of {@link showSettings} and {@link setSettings}. */
export interface MeshRulesDeps {
  readonly deps: Pick<NodeDeps, 'clock' | 'log' | 'logState' | 'membership' | 'settings'>
  readonly accessControl: Pick<AccessControl, 'meshRules'>
  readonly directory: Pick<Directory, 'agent' | 'shownAddress'>
}

/** The rules in force on a node: the owner's settings for the mesh, else the shipped rules. */
export function rulesInForce(log: Pick<MemberLog, 'view'>, shipped: RoutingRules): () => RoutingRules {
  let from: SettingsRecord | null = null
  let rules = shipped
  return () => {
    const { settings } = log.view()
    if (settings === from) return rules
    from = settings
    rules = settings === null ? shipped : { ...shipped, ...settings.settings }
    return rules
  }
}

/** The settings of the whole mesh. */
export function showSettings(node: MeshRulesDeps): MeshSettingsInfo {
  const record = node.deps.log.view().settings
  const { tierRules, sandbox } = node.accessControl.meshRules()
  return {
    serial: record?.serial ?? 0,
    changedAt: record === null ? null : new Date(record.at).toISOString(),
    tiers: tierRules.map(({ sourceTier, allowedTargetTiers, requiresEscalationJustification }) => ({
      from: tierText(sourceTier),
      to: allowedTargetTiers.map(tierText),
      justification: requiresEscalationJustification
    })),
    sandboxes: {
      enforced: sandbox.enforced,
      allow: sandbox.crossSandboxAllowList.map((target) =>
        target.includes('@') ? node.directory.shownAddress(target) : shown(target, 64)
      )
    },
    problems: node.deps.logState.problems()
  }
}

/**
 * Changes the settings of the whole mesh; members not given stay. The owner signs them into the log, so every node
 * follows. Unchanged settings are not signed again.
 * @throws NodeError FORBIDDEN unless this node is the owner; CONFLICT for an outdated `serial`; AGENT_NOT_FOUND,
 * AMBIGUOUS_NAME for the allow list; TIMEOUT; PEER_OFFLINE or STORE_DAMAGED while the local log is incomplete.
 */
export async function setSettings(
  node: MeshRulesDeps,
  { serial, reset, ...changes }: Calls['mesh.set']['params'],
  timeoutMs?: number
): Promise<Calls['mesh.set']['result']> {
  const { membership, log, clock, settings: shipped } = node.deps
  if (membership.nodeId !== membership.owner)
    throw new NodeError('FORBIDDEN', 'only the owner of the mesh sets what holds for it')
  const [problem] = node.deps.logState.problems()
  if (problem !== undefined) {
    const { code, message, next } = problem
    throw new NodeError(code, `the settings in force in the mesh are unknown: ${message}`, { next: [next] })
  }
  const newest = log.view().settings?.serial ?? 0
  if (serial !== undefined && serial !== newest) throw outdated(serial, newest)
  const inForce = meshRulesOf(node.accessControl.meshRules())
  const base = reset === true ? meshRulesOf(shipped.rules) : inForce
  const settings = changedRules(base, changes, (target) => targetOf(node, target))
  if (canonicalJson(settings) === canonicalJson(inForce)) return { ...showSettings(node), changed: false }
  const { mesh } = membership.certificate().body
  await log.submit({ kind: 'settings', mesh, settings, serial: newest + 1, at: clock.now() }, timeoutMs)
  return { ...showSettings(node), changed: true }
}

function outdated(serial: number, newest: number): NodeError {
  const why = `settings changed since you read them (you: serial ${serial}, current: ${newest})`
  return new NodeError('CONFLICT', `${why}; read them again and repeat the change`, {
    next: ['a2a-node mesh show --json']
  })
}

/** The rules with the members that are given. */
function changedRules(
  { tierRules, sandbox }: MeshSettings,
  { tiers, sandboxes }: Pick<Calls['mesh.set']['params'], 'tiers' | 'sandboxes'>,
  addressOf: (target: string) => string
): MeshSettings {
  const wanted = tiers?.map(({ from, to, justification }) => ({
    sourceTier: from,
    allowedTargetTiers: to,
    requiresEscalationJustification: justification
  }))
  if (sandboxes === undefined) return { tierRules: wanted ?? tierRules, sandbox }
  const crossSandboxAllowList = sandboxes.allow.map((target) => addressOf(target))
  return { tierRules: wanted ?? tierRules, sandbox: { enforced: sandboxes.enforced, crossSandboxAllowList } }
}

function meshRulesOf({ tierRules, sandbox }: MeshSettings): MeshSettings {
  return { tierRules, sandbox }
}

/** An agent id on any node stays unchanged; `id@node` becomes the address used in messages. */
function targetOf(node: MeshRulesDeps, text: string): string {
  return parseAddress(text) === null ? text : addressText(node.directory.agent(text))
}
