import { existsSync } from 'node:fs'
import { type ConfigFault, faultText } from '../../config/candidate.js'
import { allSettings, envName, isFileOnly, type NamedSetting, shownValue } from '../../config/settings.js'
import { type VariableNote, variableNotes } from '../../config/unset-variables.js'
import { NodeError } from '../../kit/errors.js'
import { shown } from '../../kit/text.js'
import type { Problem } from '../../ports/node-api.js'
import type { Action, CommandContext } from '../context.js'
import { EXIT, EXIT_CODES } from '../exit-codes.js'
import { flagWords } from '../start/memory.js'
import { type StartSettings, startSettings } from '../start-settings.js'
import { hintedAll, problemLines } from '../terminal/banner.js'
import { jsonLine, type Output } from '../terminal/output.js'
import { wrap } from '../terminal/render.js'

/** Characters of a line of a comment. */
const REMARK_MAX = 74

/** `config path`: where the file lies, whether it is there or not. */
export const configPath: Action = async ({ output, paths }) => {
  const { configFile, home, agents, socket } = paths()
  if (output.json)
    output.object('config-path@1', { path: configFile, exists: existsSync(configFile), home, agents, socket })
  else output.print(configFile)
  return EXIT.ok
}

/** `config show`: what the next start would use. */
export const configShow: Action = async (context) => {
  const { output } = context
  const loaded = await startSettings(context, {})
  for (const fault of loaded.faults) output.note(shown(fault, 1000))
  if (output.json) {
    const settings = allSettings().map((one) => ({
      ...described(one, loaded),
      default: one.setting.fallback,
      unit: one.setting.unit,
      allowed: one.setting.allowed,
      env: isFileOnly(one.setting.form) ? null : envName(one.path),
      about: one.setting.about
    }))
    output.object('config@1', { path: context.paths().configFile, settings, remembered: loaded.texts })
    return EXIT.ok
  }
  const { configFile } = context.paths()
  output.print(`# ${configFile}${existsSync(configFile) ? '' : '  (not there)'}`)
  const words = Object.entries(loaded.texts).map(([flag, texts]) => flagWords(flag, texts))
  if (words.length > 0)
    printRemark(output, '', `remembered from the last start: ${words.join(' ')}  (--no-<flag> forgets)`)
  let section = ''
  for (const one of allSettings()) {
    if (one.section !== section) output.print(output.paint('bold', `${one.section}:`))
    section = one.section
    printRemark(output, '  ', `${one.setting.about} Allowed: ${one.setting.allowed}.`)
    const { value, source, where } = described(one, loaded)
    const given = `  ${one.key}: ${shown(jsonLine(value), 1000)}`
    const from = source === 'default' ? '' : `   # from ${where}`
    const isWide = given.length + from.length > (output.width ?? Number.POSITIVE_INFINITY)
    if (isWide && from !== '') printRemark(output, '  ', `from ${where}`)
    output.print(`${given}${isWide ? '' : output.paint('cyan', from)}`)
  }
  return EXIT.ok
}

/** Prints a comment of YAML, folded for the terminal. */
function printRemark(output: Output, indent: string, text: string): void {
  const width = Math.max(10, Math.min(REMARK_MAX, (output.width ?? REMARK_MAX) - indent.length - 2))
  for (const line of wrap(text, width)) output.print(output.paint('dim', `${indent}# ${line}`))
}

function described(
  one: NamedSetting,
  { config, origins, hidden, agentDirs }: StartSettings
): { key: string; value: unknown; source: string; where: string | null } {
  const values = config as unknown as Record<string, Record<string, unknown>>
  const { source = 'default', where = null } = origins.get(one.path) ?? {}
  const value = shownValue(one, values[one.section]?.[one.key])
  if (one.path === 'agents.dirs' && agentDirs.length > 0) {
    const place = `--agents, remembered from the last start${where === null ? '' : `, and ${where}`}`
    return { key: one.path, value: [...(value as readonly string[]), ...agentDirs], source: 'remembered', where: place }
  }
  const below = hidden.get(one.path)
  return { key: one.path, value, source, where: below === undefined ? where : `${where}, before ${below}` }
}

/** Milliseconds for the answer of a running node; the check is good without it. */
const STATUS_MS = 5000

/** Problems of the running node that are about its config, such as changed settings; none without an answer. */
async function runningProblems({ api, output }: CommandContext): Promise<Problem[]> {
  const { problems } = await api()
    .call('node.status', {}, { signal: AbortSignal.timeout(STATUS_MS) })
    .catch(() => ({ problems: [] }))
  return hintedAll(
    output,
    problems.filter(({ code }) => code === 'CONFIG_CHANGED')
  )
}

/**
 * `config check`: every fault of file, environment and remembered flags, each variable that is not set, and settings
 * that a running node does not use yet.
 */
export const configCheck: Action = async (context) => {
  const { output } = context
  const path = context.paths().configFile
  try {
    const { config, faults, texts } = await startSettings(context, {})
    const variables = variableNotes(config, context.env)
    const problems = await runningProblems(context)
    for (const fault of faults) output.note(shown(fault, 1000))
    if (output.json) {
      output.object('config-check@1', { ok: true, path, faults: [], variables, remembered: texts, problems })
      return EXIT.ok
    }
    const given = `${config.given.size} of ${allSettings().length} settings given`
    output.print(`${output.paint('green', 'ok')}  ${existsSync(path) ? path : `no file at ${path}`}, ${given}`)
    for (const one of variables) output.print(`${output.paint('yellow', 'note')}  ${noteText(one)}`)
    for (const line of problemLines(output, problems)) output.print(line)
    return EXIT.ok
  } catch (error) {
    if (!(error instanceof NodeError) || error.code !== 'CONFIG_INVALID') throw error
    const faults = (error.data as { faults?: readonly ConfigFault[] } | undefined)?.faults ?? []
    if (output.json) output.object('config-check@1', { ok: false, path, faults })
    else for (const fault of faults) output.print(`${output.paint('red', 'fault')}  ${shown(faultText(fault), 2000)}`)
    return EXIT_CODES.CONFIG_INVALID
  }
}

function noteText({ key, variable, kind }: VariableNote): string {
  const place = shown(key, 200)
  return kind === 'unset'
    ? `${place}: the variable ${variable} is not set here; a node started so cannot use this entry`
    : `${place}: $${variable} is passed as it is; write \${${variable}} for the variable`
}
