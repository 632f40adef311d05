import { shown } from '../../kit/text.js'
import { formatDuration } from '../../kit/units.js'
import type { ApprovalInfo } from '../../ports/policy-api.js'
import type { Action } from '../context.js'
import { EXIT } from '../exit-codes.js'
import { showWatch } from '../live.js'
import { isSet } from '../options.js'
import type { Output } from '../output.js'
import { type Cell, tableLines } from '../render.js'
import { agoText } from '../words.js'

/** `approvals ls`: what waits for a person; with `--watch` again at each change. */
export const listApprovals: Action = async ({ output, api }, _args, options) => {
  if (isSet(options, 'watch')) {
    const watch = api().watch('approvals.list', {})
    return await showWatch(output, watch, { schema: 'approvals@1', lines: async (item) => await approvalLines(output, item.approvals) })
  }
  const { approvals } = await api().call('approvals.list', {})
  if (output.json) output.object('approvals@1', { approvals })
  else for (const line of await approvalLines(output, approvals)) output.print(line)
  return EXIT.ok
}

async function approvalLines(output: Output, list: readonly ApprovalInfo[]): Promise<string[]> {
  if (list.length === 0) return ['nothing waits for approval']
  const now = Date.now()
  const rows = list.map((one): Cell[] => [
    { text: one.id, style: 'bold' },
    `${one.from} (${one.fromTier})`,
    one.to,
    one.capability ?? `(${one.type})`,
    one.sideEffect ?? '-',
    agoText(one.askedAt, now),
    formatDuration(Math.max(0, Date.parse(one.expiresAt) - now)),
    one.rule,
    one.input,
    saidOf(one)
  ])
  return await tableLines(output, ['ID', 'FROM', 'AGENT', 'CAPABILITY', 'EFFECT', 'ASKED', 'LEFT', 'RULE', 'INPUT', 'SENDER SAYS'], rows)
}

/** What the sender says of it, quoted: nothing in it can pass for a column of its own. */
function saidOf({ description, justification }: ApprovalInfo): string {
  const goal = description === '' ? [] : [`goal ${JSON.stringify(description)}`]
  const why = justification === null ? [] : [`justification ${JSON.stringify(justification)}`]
  return [...goal, ...why].join(', ') || '-'
}

/** `approvals allow <id>`. */
export const allowApproval: Action = async ({ output, api }, [id = ''], options) =>
  decided(output, await api().call('approvals.allow', { id, ...remembered(options) }), 'allowed')

/** `approvals deny <id>`. */
export const denyApproval: Action = async ({ output, api }, [id = ''], options) =>
  decided(output, await api().call('approvals.deny', { id, ...remembered(options) }), 'denied')

function remembered(options: Parameters<Action>[2]): { remember?: true } {
  return isSet(options, 'remember') ? { remember: true } : {}
}

function decided(output: Output, one: ApprovalInfo, outcome: 'allowed' | 'denied'): number {
  if (output.json) output.object('approval@1', { ...one, outcome })
  else output.print(`${shown(one.id)} is ${outcome}: ${shown(one.from)} to ${shown(one.to)}, ${shown(one.capability ?? one.type)}`)
  return EXIT.ok
}
