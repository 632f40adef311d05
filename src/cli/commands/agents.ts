import path from 'node:path'
import { shortId } from '../../kit/ids.js'
import { NodeError } from '../../kit/errors.js'
import { shellWord, shown } from '../../kit/text.js'
import type { AgentDetail, AgentInfo } from '../../ports/node-api.js'
import type { RemoteCardReport } from '../../compose/check-card.js'
import type { AgentFileReport } from '../../compose/compose.js'
import { hintedAll, noteProblems } from '../terminal/banner.js'
import type { Action, CommandContext } from '../context.js'
import { EXIT, EXIT_CODES } from '../exit-codes.js'
import { isSet, jsonArgument, textOption } from '../options.js'
import { jsonLine, jsonText, type Output, plainText } from '../terminal/output.js'
import { type Cell, plural, printFacts, printTable, wrap } from '../terminal/render.js'
import { readStdin } from '../stdin.js'
import { isLimitOfAgent } from '../timeouts.js'
import { providerText } from '../words.js'

const INPUT_MAX = 16_777_216

/** `agents`: the table of all agents. */
export const agents: Action = async ({ output, api }, _args, options) => {
  const [local, remote] = [isSet(options, 'local'), isSet(options, 'remote')]
  if (local && remote)
    throw new NodeError('USAGE', '--local and --remote exclude each other', { next: ['a2a-node agents --help'] })
  const result = await api().call('agents.list', local ? { origin: 'local' } : remote ? { origin: 'remote' } : {})
  if (output.json) output.object('agents@1', { agents: result.agents, problems: hintedAll(output, result.problems) })
  else if (result.agents.length === 0) output.print('no agents')
  else await printTable(output, ['AGENT', 'TIER', 'STATUS', 'SANDBOX', 'CAPABILITIES'], result.agents.map(agentRow))
  noteProblems(output, result.problems)
  return EXIT.ok
}

function agentRow(agent: AgentInfo): Cell[] {
  return [
    { text: agent.address, style: 'bold' },
    agent.tier,
    statusCell(agent),
    agent.sandboxId ?? '-',
    agent.capabilities.join(', ')
  ]
}

/** A fault of an agent matters more than its free capacity. */
function statusCell({ status, health }: Pick<AgentInfo, 'status' | 'health'>): Exclude<Cell, string> {
  if (health !== undefined && health.state !== 'healthy')
    return { text: health.state, style: health.state === 'unhealthy' ? 'red' : 'yellow' }
  return { text: status, style: status === 'ready' ? 'green' : status === 'busy' ? 'yellow' : 'dim' }
}

function healthText({ state, reason, since }: NonNullable<AgentInfo['health']>): string {
  return `${state} since ${since}${reason === null ? '' : `: ${shown(reason, 1000)}`}`
}

/** `agents show <agent>`. */
export const showAgent: Action = async ({ output, api }, [agent = '']) => {
  const detail = await api().call('agents.show', { agent })
  if (output.json) output.object('agent@1', detail)
  else printAgent(output, detail)
  return EXIT.ok
}

function printAgent(output: Output, agent: AgentDetail): void {
  const { text, style } = statusCell(agent)
  output.print(`${output.paint('bold', shown(agent.address))}   ${agent.tier}   ${output.paint(style, text)}`)
  for (const line of wrap(shown(agent.description, 1000), 76)) output.print(`  ${line}`)
  printFacts(output, [
    ['name', agent.name],
    ['version', `${agent.version}, revision ${agent.revision}`],
    ['node', `${agent.node.name} (${shortId(agent.node.id)})`],
    agent.sandboxId === null ? null : ['sandbox', agent.sandboxId],
    agent.labels.length === 0 ? null : ['labels', agent.labels.join(', ')],
    agent.provider === undefined ? null : ['provider', providerText(agent.provider)],
    agent.health === undefined ? null : ['health', healthText(agent.health)],
    agent.source === null ? null : ['source', agent.source]
  ])
  for (const one of agent.capabilities) {
    const marks = [
      one.default === true ? 'default' : null,
      one.idempotent === true ? 'idempotent' : null,
      `side effect: ${one.sideEffect ?? 'exec'}`
    ]
    output.print(
      `${output.paint('bold', shown(one.id))}  ${output.paint('dim', marks.filter((mark) => mark !== null).join(', '))}`
    )
    if (one.description !== '') for (const line of wrap(shown(one.description, 1000), 76)) output.print(`  ${line}`)
    printFacts(output, [
      ['input', jsonLine(one.inputSchema ?? {})],
      ['output', jsonLine(one.outputSchema ?? {})]
    ])
  }
}

/**
 * `agents check <file>`: reads and loads an agent file, every one of a directory, or the A2A card in a file or at a
 * URL, as the node of this home would; it need not run.
 */
export const checkAgent: Action = async (context, [file = '']) => {
  const card = await checkedCard(context, file)
  if (card !== null) return reportCard(context.output, file, card)
  const { output, paths } = context
  const { checkAgentFiles, sandboxOfHome } = await import('../../compose/compose.js')
  const place = path.resolve(file)
  const { isDirectory, files: reports } = await checkAgentFiles(place, await sandboxOfHome(paths().home))
  const isOk = reports.every((one) => one.ok)
  if (output.json && isDirectory) output.object('agents-check@1', { ok: isOk, dir: place, files: reports })
  else if (output.json) output.object('agent-check@1', reports[0] ?? {})
  else for (const one of reports) printReport(output, one)
  if (!output.json && reports.length === 0) output.print(`no agent files (*.md) in ${shown(place, 4096)}`)
  return isOk ? EXIT.ok : EXIT_CODES.AGENT_FILE_INVALID
}

/** The report on a card; null: `target` is none. */
async function checkedCard({ paths, env }: CommandContext, target: string): Promise<RemoteCardReport | null> {
  const { checkCardAt, checkCardFile, isCardFile } = await import('../../compose/check-card.js')
  if (/^a2a-mesh:/i.test(target))
    throw new NodeError('USAGE', 'the card of an agent of the mesh needs a running node', {
      next: ['a2a-node agents show <agent>']
    })
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(target))
    return (await isCardFile(target)) ? await checkCardFile(path.resolve(target)) : null
  const { loadConfig } = await import('../../config/load.js')
  const { config } = await loadConfig({ file: paths().configFile, env })
  return await checkCardAt(target, { config, env })
}

function reportCard(output: Output, card: string, report: RemoteCardReport): number {
  const { ok, isImportable, name, skills, versions, faults, warnings } = report
  if (output.json) output.object('card-check@1', { card, ...report })
  else {
    for (const one of faults)
      output.print(
        `${output.paint('red', 'fault')}  ${cardLine(one)}${one.stopsImport ? output.paint('dim', '  (stops an import)') : ''}`
      )
    for (const one of warnings) output.print(`${output.paint('yellow', 'warning')}  ${cardLine(one)}`)
    const what = `card ${JSON.stringify(shown(name ?? '', 128))}: A2A ${versions.join(' and ')}, ${plural(skills, 'skill')}`
    const found = `${plural(faults.length, 'fault')}, ${plural(warnings.length, 'warning')}: an import ${isImportable ? 'takes' : 'refuses'} this card`
    output.print(ok ? `${output.paint('green', 'ok')}  ${what}` : found)
  }
  return ok ? EXIT.ok : EXIT_CODES.AGENT_FILE_INVALID
}

function cardLine({ path: place, wrong, right }: RemoteCardReport['warnings'][number]): string {
  return shown(`${place === '' ? 'the card' : `${place}:`} ${wrong}; ${right}`, 2000)
}

function printReport(output: Output, report: AgentFileReport): void {
  for (const fault of report.faults)
    output.print(`${output.paint('red', 'fault')}  ${shown(placeOf(fault), 4096)}: ${shown(fault.reason, 1000)}`)
  if (report.importBy !== undefined) return printSubAgent(output, report)
  if (report.ok)
    output.print(
      `${output.paint('green', 'ok')}  agent ${shown(report.id)}: ${report.capabilities.map((one) => shown(one)).join(', ')}`
    )
  for (const one of report.warnings)
    output.print(`${output.paint('yellow', 'warning')}  ${shown(placeOf(one), 4096)}: ${shown(one.reason, 1000)}`)
  if (report.ignored.length > 0) output.print(`ignored keys: ${report.ignored.map((one) => shown(one)).join(', ')}`)
}

function printSubAgent(output: Output, { file, id, importBy = [] }: AgentFileReport): void {
  const [first = ''] = importBy
  output.print(
    `${output.paint('green', 'ok')}  sub-agent file ${shown(file, 4096)} (${shown(id)}), to be imported: ${output.hint(first)} (or --runtime llm)`
  )
}

function placeOf(fault: { readonly file: string; readonly line: number | null }): string {
  return fault.line === null ? fault.file : `${fault.file}:${fault.line}`
}

/** `agents new <name>`: writes the file of an agent, or the files of a preset; needs no running node. */
export const newAgent: Action = async (context, [name], options) => {
  const { output, paths } = context
  const [{ startSettings }, { newAgentFiles }] = await Promise.all([
    import('../start-settings.js'),
    import('../../compose/compose.js')
  ])
  const { agents: dir } = paths()
  const { config, agentDirs } = await startSettings(context, {})
  const { dirs, starters } = config.agents
  const preset = textOption(options, 'preset') ?? null
  const files = await newAgentFiles({
    dir,
    name: name ?? null,
    preset,
    others: { dirs: [...dirs, ...agentDirs], starters }
  })
  const next = nextOfNew(files.map(({ file }) => file)).map((one) => output.hint(one))
  if (output.json) output.object('agents-new@1', { files, next })
  else {
    for (const { tier, file } of files)
      output.print(`${output.paint('green', 'wrote')}  ${shown(file, 4096)}${tier === null ? '' : `  ${tier}`}`)
    output.print('Edit it, check it, run it once, and start the node (a running node loads it by itself):')
    for (const one of next) output.print(`  ${shown(one, 5000)}`)
  }
  return EXIT.ok
}

/** Next steps for new agent files: check all, run one, serve them. */
function nextOfNew(files: readonly string[]): readonly string[] {
  const [first = ''] = files
  const all = files.length === 1 ? first : path.dirname(first)
  return [
    `a2a-node agents check ${shellWord(all)}`,
    `a2a-node agents run ${shellWord(first)} '{"text":"hello"}'`,
    'a2a-node start'
  ]
}

/** `agents run <file> <json>`: runs an agent once in this process, without mesh and node. */
export const runAgent: Action = async ({ output, paths, env }, [file = '', json = ''], options) => {
  const input = jsonArgument(json === '-' ? await readStdin(INPUT_MAX, { again: output.typed }) : json, 'the input')
  const { runAgentFile } = await import('../../compose/compose.js')
  const warn = (message: string, { reason }: Readonly<Record<string, unknown>>): void =>
    output.note(shown(`${message}: ${String(reason)}`, 1000))
  const config = async () => {
    const { loadConfig } = await import('../../config/load.js')
    return (await loadConfig({ file: paths().configFile, env })).config
  }
  const outcome = await runAgentFile(path.resolve(file), textOption(options, 'capability') ?? null, {
    input,
    config,
    warn
  })
  if (!outcome.ok) {
    const bound = isLimitOfAgent(outcome) ? ` (a2a.limits.timeout of ${shown(file, 4096)})` : ''
    throw new NodeError(outcome.code, `${outcome.message}${bound}`, {
      next: [`a2a-node agents check ${shellWord(file)}`]
    })
  }
  if (output.json) output.object('agent-run@1', outcome)
  else output.print(typeof outcome.result === 'string' ? plainText(outcome.result) : jsonText(outcome.result))
  return EXIT.ok
}
