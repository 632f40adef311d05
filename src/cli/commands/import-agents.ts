import path from 'node:path'
import { NodeError } from '../../kit/errors.js'
import { shellWord, shown } from '../../kit/text.js'
import type { Action } from '../context.js'
import { EXIT_CODES } from '../exit-codes.js'
import { importExit, statusText } from '../import-report.js'
import { isSet, type Options, textOption, tierOption } from '../options.js'
import type { Output } from '../terminal/output.js'

type Imported = Awaited<ReturnType<typeof import('../../compose/compose.js').importAgents>>[number]
type ImportRuntime = Parameters<typeof import('../../compose/compose.js').importAgents>[0]['runtime']

/** `agents import <file or directory>`: makes agent files of sub-agent files; needs no running node. */
export const importAgents: Action = async (context, [source = '', ...command], options) => {
  const { output, paths } = context
  const [{ startSettings }, compose] = await Promise.all([
    import('../start-settings.js'),
    import('../../compose/compose.js')
  ])
  const { agents: dir } = paths()
  const { config, agentDirs } = await startSettings(context, {})
  const { dirs, starters } = config.agents
  const isDryRun = isSet(options, 'dryRun')
  const runtime = runtimeOf(options, command, Object.keys(config.llm.providers))
  const files = await compose.importAgents({
    source: path.resolve(source),
    dir,
    runtime,
    others: { dirs: [...dirs, ...agentDirs], starters },
    isDryRun
  })
  const written = files.filter(({ status }) => status === 'imported').flatMap(({ target }) => target ?? [])
  const next = nextOf(written, isDryRun).map((one) => output.hint(one))
  if (output.json) output.object('agents-import@1', { isDryRun, files, next })
  else printImported(output, files, { isDryRun, next })
  return importExit(
    files.map(({ status }) => status),
    EXIT_CODES.AGENT_FILE_INVALID
  )
}

/** @throws NodeError USAGE */
function runtimeOf(options: Options, command: readonly string[], providers: readonly string[]): ImportRuntime {
  const runtime = textOption(options, 'runtime')
  const model = textOption(options, 'model')
  const tier = tierOption(options, 'tier')
  const next = ['a2a-node agents import --help']
  const rest = { tier: tier === undefined ? null : (`L${tier}` as const) }
  if (runtime === 'command') {
    if (model !== undefined) throw new NodeError('USAGE', '--model goes with --runtime llm', { next })
    return { runtime, model: null, command: command.length === 0 ? null : command, ...rest }
  }
  if (runtime !== 'llm')
    throw new NodeError('USAGE', 'what runs the agents? Give --runtime llm or --runtime command', { next })
  if (command.length > 0) throw new NodeError('USAGE', 'a program goes with --runtime command', { next })
  return { runtime, model: modelOf(model, providers), command: null, ...rest }
}

function modelOf(model: string | undefined, providers: readonly string[]): string {
  const [only, ...others] = providers
  if (only === undefined)
    throw new NodeError('USAGE', 'the config has no language model: name one in llm.providers', {
      next: ['a2a-node config path']
    })
  if (model === undefined && others.length === 0) return only
  if (model !== undefined && providers.includes(model.split('/')[0] ?? '')) return model
  const reason =
    model === undefined
      ? 'the config has several language models'
      : `the config has no provider of ${JSON.stringify(model)}`
  throw new NodeError('USAGE', `${reason}: --model takes one of ${providers.join(', ')}, or provider/model`, {
    next: [`a2a-node agents import --runtime llm --model ${only} <file>`]
  })
}

function printImported(
  output: Output,
  files: readonly Imported[],
  { isDryRun, next }: { readonly isDryRun: boolean; readonly next: readonly string[] }
): void {
  for (const { file, status, id, target, reason, line, ignored } of files) {
    const place = shown(line === null ? file : `${file}:${line}`, 4096)
    const what =
      target === null
        ? `${place}: ${shown(reason ?? '', 1000)}`
        : `${place}  agent ${shown(id)}, ${shown(target, 4096)}`
    output.print(`${statusText(output, status, isDryRun)}  ${what}`)
    if (target !== null && ignored.length > 0)
      output.print(`  not used: ${ignored.map((one) => shown(one)).join(', ')}`)
  }
  if (files.length === 0) output.print('no sub-agent files (*.md) there')
  for (const one of next) output.print(`  ${shown(one, 5000)}`)
}

function nextOf([first, ...others]: readonly string[], isDryRun: boolean): readonly string[] {
  if (first === undefined || isDryRun) return []
  return [`a2a-node agents check ${shellWord(others.length === 0 ? first : path.dirname(first))}`, 'a2a-node start']
}
