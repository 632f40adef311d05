import { NodeError } from '../../kit/errors.js'
import { isKeyText, shortId } from '../../kit/ids.js'
import { shown } from '../../kit/text.js'
import { formatDuration } from '../../kit/units.js'
import type {
  PartyCriteriaInfo,
  PolicyInfo,
  PolicyRuleInfo,
  PolicyTestParty,
  PolicyTestQuery,
  PolicyTestResult
} from '../../ports/policy-api.js'
import type { Action } from '../context.js'
import { EXIT } from '../exit-codes.js'
import { given, type Options, textOption } from '../options.js'
import type { Output, Style } from '../output.js'
import { type Cell, printFacts, printTable } from '../render.js'

const STYLES: Readonly<Record<PolicyRuleInfo['decision'], Style>> = { allow: 'green', ask: 'yellow', deny: 'red' }

/** `policy show`: the rules in force, in the order in which they are tried. */
export const showPolicy: Action = async ({ output, api }) => {
  const info = await api().call('policy.show', {})
  if (output.json) output.object('policy@1', info)
  else await printPolicy(output, info)
  return EXIT.ok
}

async function printPolicy(output: Output, info: PolicyInfo): Promise<void> {
  const { file, rules, warnings, approvalTimeoutMs } = info
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
  for (const one of warnings) output.print(`${output.paint('yellow', 'warning')}  line ${one.line}: ${shown(one.message, 2000)}`)
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

function partyText({ node, agent, tier, sandbox }: PartyCriteriaInfo): string {
  const parts = [
    agent === null ? '' : agent.join('|'),
    node === null ? '' : `@${node.map((one) => (isKeyText(one) ? shortId(one) : one)).join('|')}`,
    tier === null ? '' : tier.join('|'),
    sandbox === null ? '' : `sandbox ${sandbox.map((one) => one ?? 'none').join('|')}`
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
  const { decision, code, rule, reason, file, line, from, to, type, capability, sideEffect, assumed } = result
  output.print(`${output.paint(STYLES[decision], decision)}  ${shown(rule)}${code === null ? '' : `  [${code}]`}`)
  printFacts(output, [
    file === null ? null : ['rule', `${file}:${line ?? ''}`],
    reason === null ? null : ['reason', reason],
    ['from', partyLine(from)],
    ['to', partyLine(to)],
    ['message', [type, capability, sideEffect === null ? null : `side effect ${sideEffect}`].filter((one) => one !== null).join(', ')],
    assumed === null ? null : ['assumed', assumedText(assumed, String(sideEffect))]
  ])
  return EXIT.ok
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
  if (from === undefined || to === undefined) throw new NodeError('USAGE', '--from and --to are required: a tier, a node or an agent')
  const more = given({
    type: textOption(options, 'type') as PolicyTestQuery['type'],
    capability: textOption(options, 'capability'),
    sideEffect: textOption(options, 'sideEffect') as PolicyTestQuery['sideEffect'],
    justification: textOption(options, 'justification')
  })
  return { from, to, ...more }
}
