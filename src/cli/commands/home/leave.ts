import { NodeError } from '../../../kit/errors.js'
import { shown } from '../../../kit/text.js'
import type { LeavePlan, LeftMesh } from '../../../maintenance/leave.js'
import type { Action, CommandContext } from '../../context.js'
import { EXIT } from '../../exit-codes.js'
import { isSet } from '../../options.js'
import { canAsk, confirm } from '../../terminal/confirm.js'
import type { Output } from '../../terminal/output.js'
import { plural } from '../../terminal/render.js'
import { agreed } from '../../terminal/agreed.js'

const NEW_HOME = 'a2a-node start --home <new directory> --join -'
/** Names of members that a plan lists. */
const NAMED = 5

/** `leave`: shows the plan, asks on a terminal, and takes the home out of its mesh. */
export const leave: Action = async (context, _args, options) => {
  const { output } = context
  const isDryRun = isSet(options, 'dryRun')
  const { leaveMesh } = await import('../../../maintenance/leave.js')
  const planned: LeavePlan[] = []
  const agrees = async (plan: LeavePlan): Promise<boolean> => {
    planned.push(plan)
    if (!output.json) for (const line of planLines(plan)) output.print(line)
    if (isDryRun) return false
    const question = `leave the mesh ${shown(plan.former.mesh ?? 'of this home')}?`
    return await agreed(output, options, { question })
  }
  const left = await leaveMesh(context.paths(), { now: Date.now(), agrees })
  if (left === null && !isDryRun) throw new NodeError('CANCELED', 'nothing was changed', { next: ['a2a-node status'] })
  if (output.json) output.object('leave@1', { ...(left ?? planned[0]), left: left !== null })
  else if (left === null) output.note('nothing was changed (--dry-run)')
  else for (const line of leftLines(output, left, planned[0]?.use ?? null)) output.print(line)
  return EXIT.ok
}

/**
 * Before a join by a code: takes the home out of its mesh when nobody loses anything by it, and a person or `--leave`
 * agrees. Does nothing to a home in no mesh.
 * @throws NodeError ALREADY_IN_MESH where the node stays; INVITE_INVALID for the code; CANCELED
 */
export async function leaveFirst(context: CommandContext, code: string, isAgreed: boolean): Promise<void> {
  const { output } = context
  const { leaveForJoin } = await import('../../../maintenance/leave.js')
  const agrees = async (plan: LeavePlan): Promise<boolean> => {
    if (!plan.isUnused) throw stays(plan)
    if (!isAgreed && (output.json || !canAsk(output))) throw unasked(plan)
    for (const line of planLines(plan)) output.note(line)
    if (isAgreed || (await confirm(`leave the mesh ${shown(plan.former.mesh ?? 'of this home')} and join?`)))
      return true
    throw new NodeError('CANCELED', 'nothing was changed', { next: [NEW_HOME] })
  }
  const left = await leaveForJoin(context.paths(), code, { now: Date.now(), agrees })
  if (left !== null) output.note(`left the mesh ${shown(left.former.mesh ?? 'of this home')}`)
}

/** The error of a join that waits for a yes. */
function unasked({ former, use }: LeavePlan): NodeError {
  const why = use?.isOut === true ? 'which has put its node out' : 'which has no other member and no work'
  const state = `this home is in the mesh ${shown(former.mesh ?? '')} already, ${why}; --leave leaves it first`
  return new NodeError('ALREADY_IN_MESH', state, { next: ['a2a-node start --join - --leave', NEW_HOME] })
}

/** The error of a join from a mesh that others, or work, need. */
function stays({ former, use }: LeavePlan): NodeError {
  const state = `this home is in the mesh ${shown(former.mesh ?? '')} already, with ${useText(use)}`
  return new NodeError('ALREADY_IN_MESH', state, { next: ['a2a-node leave --dry-run', NEW_HOME] })
}

function useText(use: LeavePlan['use']): string {
  if (use === null || use.others === null || use.work === null) return 'a log that cannot be read'
  const members = use.others.length === 0 ? [] : [plural(use.others.length, 'other member')]
  return [...members, ...use.work].join(', ')
}

function planLines({ home, former, name, use, kept, dropped, into }: LeavePlan): string[] {
  return [
    `${home}: node ${shown(former.name ?? '')}${former.mesh === null ? '' : `, mesh ${shown(former.mesh)}`}`,
    ...useLines(use),
    `new node  ${shown(name)}, with a new key and in no mesh`,
    ...kept.map((text) => `keeps     ${shown(text, 1000)}`),
    ...dropped.map((text) => `moves     ${shown(text, 1000)}`),
    `into      ${shown(into, 4096)}`
  ]
}

function useLines(use: LeavePlan['use']): string[] {
  if (use === null) return ['an earlier leave was interrupted; this one finishes it']
  const { others, work, isOwner, isOut } = use
  if (isOut) return ['the mesh has put this node out']
  if (others === null || work === null) return ['the log of the mesh cannot be read: other members are unknown']
  if (others.length === 0 && work.length === 0) return ['the mesh has no other member and no work']
  const names = others.slice(0, NAMED).map((one) => shown(one))
  const more = others.length > NAMED ? ` and ${others.length - NAMED} more` : ''
  return [
    ...(others.length === 0 ? [] : [`members   ${names.join(', ')}${more} stay in the mesh`]),
    ...(isOwner && others.length > 0 ? ['owner     without this node nobody sets the rules of the mesh'] : []),
    ...work.map((text) => `work      ${text}`)
  ]
}

function leftLines(output: Output, { former, movedTo, name }: LeftMesh, use: LeavePlan['use']): string[] {
  const member = former.id === null ? '<peer>' : former.id.slice(0, 8)
  const isListed = use !== null && !use.isOut && use.others?.length !== 0
  return [
    `The node ${shown(name)} is in no mesh. The data of its former node, with its private key, is in ${movedTo}.`,
    ...(isListed
      ? [
          'Members list the former node until an admin of the mesh revokes it:',
          `  try: ${output.hint(`a2a-node peers revoke ${member}   # on a machine of an admin`)}`
        ]
      : []),
    'Join another mesh by an invite:',
    `  try: ${output.hint('a2a-node start --join -')}`
  ]
}
