import { shortId } from '../../kit/ids.js'
import { shown } from '../../kit/text.js'
import { formatDuration } from '../../kit/units.js'
import type {
  ApprovalDetail,
  ApprovalElsewhere,
  ApprovalInfo,
  ApprovalList,
  ApprovalResult,
  ApprovalText
} from '../../ports/policy-api.js'
import type { Action } from '../context.js'
import { EXIT } from '../exit-codes.js'
import { showWatch } from '../terminal/live.js'
import { isSet, jsonArgument, textOption } from '../options.js'
import { jsonText, type Output } from '../terminal/output.js'
import { type Cell, printFacts, tableLines } from '../terminal/render.js'
import { agoText } from '../words.js'

/** Characters of one text in a row of the list. */
const ROW_SHOWN = 80
/** Stands behind what is cut, outside of any quotes. */
const CUT = '… (cut)'

/** `approvals ls`: what waits for a person; with `--watch` again at each change. */
export const listApprovals: Action = async ({ output, api }, _args, options) => {
  if (isSet(options, 'watch')) {
    const watch = api().watch('approvals.list', { machines: true })
    return await showWatch(output, watch, {
      schema: 'approvals@1',
      lines: async (item) => await listLines(output, item)
    })
  }
  const list = await api().call('approvals.list', { machines: true })
  if (output.json) output.object('approvals@1', list)
  else for (const line of await listLines(output, list)) output.print(line)
  return EXIT.ok
}

async function listLines(
  output: Output,
  { approvals, elsewhere = [], machines = [] }: ApprovalList
): Promise<string[]> {
  const others = await Promise.all(machines.map((one) => machineLines(output, one)))
  // A request of this node may wait at a listed machine.
  const listed = new Set(machines.flatMap((one) => one.approvals.map(({ id }) => `${one.node.id} ${id}`)))
  const rest = elsewhere.filter(({ id, node }) => !listed.has(`${node.id} ${id}`))
  const isNone = approvals.length === 0 && (rest.length > 0 || listed.size > 0)
  const own = isNone ? [] : await approvalLines(output, approvals)
  return [...own, ...others.flat(), ...rest.map(elsewhereLine)]
}

/** The approvals of another machine of the owner, with its name and key. */
async function machineLines(
  output: Output,
  { node, approvals, more, error }: NonNullable<ApprovalList['machines']>[number]
): Promise<string[]> {
  const name = `${shown(node.name)} (${shortId(node.id)})`
  if (error !== null) return [`not asked: ${name}: ${shown(error.message)}`]
  if (approvals.length === 0) return []
  const rest = more === 0 ? [] : [`${more} more: a2a-node approvals ls   # on ${shown(node.name)}`]
  return [`on ${name}:`, ...(await approvalLines(output, approvals)), ...rest]
}

/** `waiting for approval of text on desktop (id), since 5 s ago, 4 min left, task_1; on desktop: a2a-node ...`. */
function elsewhereLine({ agent, node, capability, taskId, swarm, since, id, until }: ApprovalElsewhere): string {
  const now = Date.now()
  const left = until === null ? [] : [`${formatDuration(Math.max(0, Date.parse(until) - now))} left`]
  const work = taskId ?? (swarm === null ? [] : `swarm ${swarm}`)
  const facts = [...(capability === null ? [] : [capability]), `asked ${agoText(since, now)}`, ...left].concat(work)
  const command = id === null ? 'a2a-node approvals ls' : `a2a-node approvals allow ${shown(id)}`
  const where = `${shown(agent)} (${shortId(node.id)})`
  return `waiting for approval of ${where}: ${shown(facts.join(', '), 300)}; its owner runs on ${shown(node.name)}: ${command}`
}

async function approvalLines(output: Output, list: readonly ApprovalInfo[]): Promise<string[]> {
  if (list.length === 0) return ['no message waits for approval']
  const rows = list.map((one): Cell[] => [
    { text: one.id, style: 'bold' },
    `${one.from} (${shortId(one.fromNode.id)}, ${one.fromTier})`,
    one.to,
    one.capability ?? `(${one.type})`,
    one.sideEffect ?? '-',
    agoText(one.askedAt, Date.now()),
    leftText(one),
    one.rule,
    inputOf(one),
    statedOf(one)
  ])
  const titles = ['ID', 'FROM', 'AGENT', 'CAPABILITY', 'EFFECT', 'ASKED', 'LEFT', 'RULE', 'INPUT', 'SENDER SAYS']
  const lines = await tableLines(output, titles, rows)
  const [cut] = list.filter((one) => `${inputOf(one)}${statedOf(one)}`.includes(CUT))
  return cut === undefined
    ? lines
    : [...lines, `(cut): all of it is shown by ${output.hint(`a2a-node approvals show ${shown(cut.id)}`)}`]
}

/** The sender with the key of its node: names alone may look alike. */
function fromText({ from, fromNode }: ApprovalInfo): string {
  return `${from} (${shortId(fromNode.id)})`
}

/** The time until the approval expires, or until its caller gives up. */
function leftText({ expiresAt, endsBy }: ApprovalInfo): string {
  const left = formatDuration(Math.max(0, Date.parse(expiresAt) - Date.now()))
  return endsBy === 'caller' ? `${left} (caller)` : left
}

function inputOf({ input, cut }: ApprovalInfo): string {
  const whole = cut.includes('input') ? input.replace(/…$/, '') : input
  return begin(whole, { isCut: cut.includes('input'), quoted: (text) => text })
}

/** The sender's own description, quoted: no part of it can pass for another column. */
function statedOf({ description, justification, cut }: ApprovalInfo): string {
  const stated = (of: ApprovalText, text: string): string =>
    begin(text, { isCut: cut.includes(of), quoted: JSON.stringify })
  const goal = description === '' ? [] : [`goal ${stated('description', description)}`]
  const why = justification === null ? [] : [`justification ${stated('justification', justification)}`]
  return [...goal, ...why].join(', ') || '-'
}

function begin(text: string, { isCut, quoted }: { readonly isCut: boolean; quoted(text: string): string }): string {
  return isCut || text.length > ROW_SHOWN ? `${quoted(text.slice(0, ROW_SHOWN))}${CUT}` : quoted(text)
}

/** `approvals show <id>`: every field of one approval, uncut. */
export const showApproval: Action = async ({ output, api }, [id = '']) => {
  const one = await api().call('approvals.show', { id })
  if (output.json) output.object('approval-detail@1', one)
  else printApproval(output, one)
  return EXIT.ok
}

function printApproval(output: Output, one: ApprovalDetail): void {
  const { id, capability, sideEffect, type, copies, whole } = one
  output.print(`${output.paint('bold', shown(id))}   ${output.paint('yellow', 'waits for approval')}`)
  printFacts(output, [
    ['from', `${fromText(one)}   ${one.fromTier}`],
    ['agent', `${one.to} (${shortId(one.toNode.id)})`],
    [
      'asks for',
      [type, capability, sideEffect === null ? null : `side effect ${sideEffect}`]
        .filter((part) => part !== null)
        .join(', ')
    ],
    one.requestId === null ? null : ['request', `${one.requestId}, attempt ${one.attempt ?? 1}`],
    copies < 2 ? null : ['copies', `${copies}; all of them hear of the decision`],
    ['asked', agoText(one.askedAt, Date.now())],
    ['left', `${leftText(one)}${one.endsBy === 'caller' ? ', the timeout of the caller' : ''}`],
    ['rule', one.rule]
  ])
  // Quoted, so that no word of the sender passes for one of this node.
  const stated = [
    ['input:', whole.input],
    ['goal, as the sender gives it:', whole.description === '' ? null : whole.description],
    ['justification, as the sender gives it:', whole.justification]
  ] as const
  stated.forEach(([label, text], at) => {
    if (text !== null || at === 0) output.print(`  ${output.paint('dim', label)}\n${jsonText(text)}`)
  })
  for (const verb of ['allow', 'deny']) {
    const content = verb === 'allow' && one.question === 'form' ? " --content '<json>'" : ''
    output.note(`  ${verb}: ${output.hint(`a2a-node approvals ${verb} ${shown(id)}${content}`)}`)
  }
}

/** `approvals allow <id>`. */
export const allowApproval: Action = async ({ output, api }, [id = ''], options) =>
  decided(output, await api().call('approvals.allow', { id, ...remembered(options), ...contentOf(options) }), 'allowed')

/** `approvals deny <id>`. */
export const denyApproval: Action = async ({ output, api }, [id = ''], options) =>
  decided(output, await api().call('approvals.deny', { id, ...remembered(options) }), 'denied')

function contentOf(options: Parameters<Action>[2]): { content?: unknown } {
  const text = textOption(options, 'content')
  return text === undefined ? {} : { content: jsonArgument(text, '--content') }
}

function remembered(options: Parameters<Action>[2]): { remember?: true } {
  return isSet(options, 'remember') ? { remember: true } : {}
}

function decided(output: Output, one: ApprovalResult, outcome: 'allowed' | 'denied'): number {
  if (output.json) {
    output.object('approval@1', { ...one, outcome })
    return EXIT.ok
  }
  if (one.question !== undefined) {
    output.print(`${shown(one.id)} is ${outcome === 'allowed' ? 'answered' : 'declined'}: ${shown(fromText(one))}`)
    return EXIT.ok
  }
  const line = (info: ApprovalInfo, what: string): string =>
    `${shown(info.id)} is ${what}: ${shown(fromText(info))} to ${shown(info.to)}, ${shown(info.capability ?? info.type)}`
  output.print(line(one, outcome))
  const { remembered: rule, alsoDecided = [] } = one
  if (rule === null) output.print('no rule was written: none asks about it any more')
  else if (rule !== undefined)
    output.print(`rule added, ${shown(rule.id)}: ${shown(rule.file, 1000)}:${rule.line}: ${shown(rule.text, 2000)}`)
  for (const other of alsoDecided) output.print(line(other, `${other.outcome} by it as well`))
  return EXIT.ok
}
