import { NodeError } from '../../kit/errors.js'
import { isKeyText, shortId } from '../../kit/ids.js'
import { shellWord, shown } from '../../kit/text.js'
import { formatDuration } from '../../kit/units.js'
import type {
  PartyCriteriaInfo,
  PassedOverRule,
  PolicyInfo,
  PolicyRuleInfo,
  PolicyTestOther,
  PolicyTestParty,
  PolicyTestQuery,
  PolicyTestResult
} from '../../ports/policy-api.js'
import type { Action } from '../context.js'
import { EXIT } from '../exit-codes.js'
import { given, type Options, textOption } from '../options.js'
import type { Output, Style } from '../terminal/output.js'
import { type Cell, printFacts, printTable } from '../terminal/render.js'

const STYLES: Readonly<Record<PolicyRuleInfo['decision'], Style>> = { allow: 'green', ask: 'yellow', deny: 'red' }

/** `policy show`: the rules in force, in the order in which they are tried. */
export const showPolicy: Action = async ({ output, api }) => {
  const info = await api().call('policy.show', {})
  if (output.json) output.object('policy@1', info)
  else await printPolicy(output, info)
  return EXIT.ok
}

async function printPolicy(output: Output, info: PolicyInfo): Promise<void> {
  const { file, rules, warnings, unasked, approvalTimeoutMs } = info
  output.print(shown(file, 1000))
  printFaults(output, info)
  if (rules.length === 0) output.print('no rules')
  else {
    const rows = rules.map((rule): Cell[] => [
      String(rule.line),
      rule.id,
      { text: rule.decision, style: STYLES[rule.decision] },
      partyText(rule.from),
      partyText(rule.to),
      listText(rule.capability),
      listText(rule.sideEffect),
      listText(rule.type)
    ])
    await printTable(output, ['LINE', 'RULE', 'DECISION', 'FROM', 'TO', 'CAPABILITY', 'EFFECT', 'TYPE'], rows)
  }
  const printed = [...warnings, ...unasked].sort((a, b) => a.line - b.line)
  for (const one of printed)
    output.print(`${output.paint('yellow', 'warning')}  line ${one.line}: ${shown(one.message, 2000)}`)
  output.print(`Sandboxes come before, the tier table after them. ask waits ${formatDuration(approvalTimeoutMs)}.`)
}

function printFaults(output: Output, { file, faults, moreFaults }: PolicyInfo): void {
  if (faults.length === 0) return
  for (const { line, reason } of faults) {
    const place = line === null ? file : `${file}:${line}`
    output.print(`${output.paint('red', 'broken')}  ${shown(place, 1000)}: ${shown(reason, 1000)}`)
  }
  if (moreFaults > 0) output.print(`${output.paint('red', 'broken')}  and ${moreFaults} more`)
  output.print('The rules below are those of the last good version.')
}

/** A whole key is short, with the name that its node has now. */
function nodeText(text: string, name: string | null): string {
  if (!isKeyText(text)) return text
  return name === null ? shortId(text) : `${name} (${shortId(text)})`
}

function partyText({ node, nodeNames, agent, tier, sandbox, trust }: PartyCriteriaInfo): string {
  const parts = [
    agent === null ? '' : agent.join('|'),
    node === null ? '' : `@${node.map((one, at) => nodeText(one, nodeNames?.[at] ?? null)).join('|')}`,
    tier === null ? '' : tier.join('|'),
    sandbox === null ? '' : `sandbox ${sandbox.map((one) => one ?? 'none').join('|')}`,
    trust?.join('|') ?? ''
  ]
  return parts.filter((part) => part !== '').join(' ') || 'any'
}

function listText(values: readonly string[] | null): string {
  return values === null ? 'any' : values.join(', ')
}

/** `policy test --from TIER|PEER --to TIER|AGENT`: what this node would do, and by which rule. */
export const testPolicy: Action = async ({ output, api }, _args, options) => {
  const result = await api().call('policy.test', queryOf(options))
  if (output.json) {
    output.object('policy-test@1', result)
    return EXIT.ok
  }
  printResult(output, result)
  return EXIT.ok
}

function printResult(output: Output, result: PolicyTestResult): void {
  const {
    decision,
    code,
    rule,
    reason,
    file,
    line,
    ruleId,
    passedOver,
    from,
    to,
    type,
    capability,
    sideEffect,
    assumed,
    missing
  } = result
  output.print(`${output.paint(STYLES[decision], decision)}  ${shown(rule)}${code === null ? '' : `  [${code}]`}`)
  printFacts(output, [
    file === null ? null : ['rule', `${file}:${line ?? ''}${ruleId === null ? '' : `   ${ruleId}`}`],
    reason === null ? null : ['reason', reason],
    passedOver === null ? null : ['passed over', { text: passedOverText(result, passedOver), style: 'yellow' }],
    ['from', partyLine(from)],
    ['to', partyLine(to)],
    [
      'message',
      [type, capability, sideEffect === null ? null : `side effect ${sideEffect}`]
        .filter((one) => one !== null)
        .join(', ')
    ],
    assumed === null ? null : ['assumed', assumedText(assumed, String(sideEffect))],
    missing === null ? null : ['missing', { text: missingText(result, missing), style: 'yellow' }],
    ['decided', `by ${result.node}, this node${ALONE[result.others.length] ?? ''}`],
    ...othersOnce(result).flatMap((other) => otherFacts(output, result, other))
  ])
}

/** By how many other nodes decide. */
const ALONE: readonly string[] = [
  '',
  ', for itself alone',
  ', which has neither end: its rules count where it carries the message'
]

/** Which rule does not ask, why, and which one decides instead. */
function passedOverText({ to, rule }: PolicyTestResult, { line, why }: PassedOverRule): string {
  const instead = `the deciding rule is ${rule}`
  if (why === 'table')
    return `the ask rule at line ${line ?? '?'} matches, but asks only about messages that the tier table allows; ${instead}`
  const because =
    why === 'proposal'
      ? 'a proposal runs nothing, and the requests that follow it are asked about'
      : `${to.agent ?? 'the target'} is on another node`
  return `the ask rule at line ${line ?? '?'} is skipped here, since ${because}; ${instead}`
}

/** A node that has both roles is listed once. */
function othersOnce({ others }: PolicyTestResult): readonly PolicyTestOther[] {
  const [first, second] = others
  return second !== undefined && second.node === first?.node ? [first] : others
}

/** The capability that the target lacks: an allowed message fails all the same. */
function missingText(
  { to, node, capability }: PolicyTestResult,
  { offeredBy, nearest }: NonNullable<PolicyTestResult['missing']>
): string {
  const whose = to.agent === null ? `no agent of ${node} has` : `${to.agent} has no`
  const others =
    offeredBy.length > 0 ? `; it is one of ${offeredBy.join(', ')}` : ', nor has any other agent in the mesh'
  const hint = nearest.length === 0 ? '' : `; did you mean ${nearest.join(' or ')}?`
  return `${whose} ${capability ?? ''}${others} (an allowed message fails with CAPABILITY_NOT_FOUND)${hint}`
}

/** The other node that decides, the rule that it needs, and a command to test it. */
function otherFacts(
  output: Output,
  result: PolicyTestResult,
  { role, node, needsAllow }: PolicyTestOther
): [string, string][] {
  const { from, to, type, capability } = result
  const order = role === 'sender' ? 'before it leaves' : 'when it arrives'
  const must = needsAllow
    ? 'needs an allow rule of its own for it: the tier table refuses it'
    : 'has to allow it by its own rules'
  const also: [string, string] = ['also', `${node ?? "the sender's node"}, ${order}: ${must}`]
  if (node === null || from.agent === null || to.agent === null) return [also]
  const words = [
    'a2a-node policy test',
    '--from',
    from.agent,
    '--to',
    to.agent,
    ...(type === 'request' ? [] : ['--type', type])
  ]
  const command = [...words, ...(capability === null ? [] : ['--capability', capability])].map((one, at) =>
    at === 0 ? one : shellWord(one)
  )
  return [also, ['there', output.hint(`${command.join(' ')}   # on ${node}`)]]
}

function assumedText({ agent }: NonNullable<PolicyTestResult['assumed']>, sideEffect: string): string {
  const whose = agent === null ? 'as no agent of this node offers the capability' : `as of ${shown(agent)}`
  return `side effect ${sideEffect}, ${whose}; --side-effect names another`
}

function partyLine({ agent, tier, sandboxId }: PolicyTestParty): string {
  return `${agent ?? 'anybody'}   ${tier}${sandboxId === null ? '' : `   sandbox ${sandboxId}`}`
}

function queryOf(options: Options): PolicyTestQuery {
  const from = textOption(options, 'from')
  const to = textOption(options, 'to')
  if (from === undefined || to === undefined)
    throw new NodeError('USAGE', '--from and --to are required: a tier, a node or an agent')
  const more = given({
    type: textOption(options, 'type') as PolicyTestQuery['type'],
    capability: textOption(options, 'capability'),
    sideEffect: textOption(options, 'sideEffect') as PolicyTestQuery['sideEffect'],
    justification: textOption(options, 'justification')
  })
  return { from, to, ...more }
}
