import { isDeepStrictEqual } from 'node:util'
import { REMEMBERED, type StartFlagTexts } from '../../config/start-options.js'
import { NodeError } from '../../kit/errors.js'
import { shellWord, shown } from '../../kit/text.js'
import type { StartFlags, StartSettings } from '../start-settings.js'

/** `--http 9001`, as it would be typed; a repeated flag once for each value. */
export function flagWords(flag: string, texts: readonly string[]): string {
  return shown(texts.map((text) => `${flag} ${shellWord(text)}`).join(' '), 1000)
}

/** `--no-http` for `--http`. */
export function noFlag(flag: string): string {
  return flag.replace('--', '--no-')
}

/**
 * Lines for a person about flags of the last start: unusable ones, used ones, changed ones, and settings that used ones
 * hide.
 */
export function memoryNotes(
  settings: StartSettings,
  { typed, forgotten }: Pick<StartFlags, 'typed' | 'forgotten'>
): string[] {
  const { last, texts, faults, hidden } = settings
  const isUsed = (flag: string): boolean =>
    Object.hasOwn(last, flag) && Object.hasOwn(texts, flag) && !Object.hasOwn(typed, flag)
  const used = REMEMBERED.filter(({ flag }) => isUsed(flag))
  const changes = REMEMBERED.flatMap(({ flag }) => changeOf(flag, last, texts))
  // A flag that cannot be read may be there.
  const known = faults.length > 0 ? [] : forgotten
  const idle = known.filter((flag) => !Object.hasOwn(last, flag) && !Object.hasOwn(texts, flag))
  return [
    ...faults.map((fault) => `${shown(fault, 1000)}: give the flags to start again; --no-<flag> forgets one`),
    ...(used.length === 0
      ? []
      : [`with flags of the last start: ${used.map(({ flag }) => flagWords(flag, last[flag] ?? [])).join(' ')}`]),
    ...(changes.length === 0 ? [] : [`other flags than at the last start: ${changes.join(', ')}`]),
    ...idle.map((flag) => `${noFlag(flag)} forgets nothing: no ${flag} is remembered`),
    ...used.flatMap(({ flag, setting }) => {
      const place = hidden.get(setting)
      return place === undefined
        ? []
        : [`${flag} of the last start goes before ${setting} of ${shown(place)}; ${noFlag(flag)} forgets it`]
    })
  ]
}

function changeOf(flag: string, last: StartFlagTexts, texts: StartFlagTexts): readonly string[] {
  const [was, is] = [last[flag], texts[flag]]
  if (was === undefined || isDeepStrictEqual(was, is)) return []
  return [`${is === undefined ? `${flag} is forgotten` : flagWords(flag, is)} (was ${shown(was.join(' '), 1000)})`]
}

/**
 * The flags of this start that the next one uses again; null to keep the file: one with faults stays until a start
 * types or forgets a flag. The network of a joined mesh is that of its invite, which the home has.
 */
export function toRemember(
  { texts, typed, last, faults }: StartSettings,
  { join, forgotten }: Pick<StartFlags, 'join' | 'forgotten'>
): StartFlagTexts | null {
  if (faults.length > 0 && Object.keys(typed).length === 0 && forgotten.length === 0) return null
  const { '--network': network, ...others } = texts
  return network === undefined || (join !== null && !Object.hasOwn(last, '--network')) ? others : texts
}

/** An error of an address that a flag of the last start has: says so, and how to start without it. */
export function withForgetting(error: unknown, { texts, typed }: Pick<StartSettings, 'texts' | 'typed'>): unknown {
  if (!(error instanceof NodeError) || !['PORT_IN_USE', 'CONFIG_INVALID', 'NO_PERMISSION'].includes(error.code))
    return error
  const flags = ['--http', '--serve-bootstrap'].filter((one) => Object.hasOwn(texts, one) && !Object.hasOwn(typed, one))
  const words = error.message.split(/[\s:,]+/)
  const flag =
    flags.find((one) => words.includes(addressOf(texts[one]).port)) ??
    flags.find((one) => words.includes(addressOf(texts[one]).host))
  if (flag === undefined) return error
  const message = `${error.message} (${flagWords(flag, texts[flag] ?? [])} of the last start)`
  return new NodeError(error.code, message, { next: [...error.next, `a2a-node start ${noFlag(flag)}`], cause: error })
}

/**
 * An error of a start: its next steps keep the typed flags, which a failed start neither remembers nor forgets. They
 * join as well, where the code was typed: without it they would found a mesh.
 */
export function withTypedFlags(
  error: unknown,
  { name, join, joinsOnce, isDetached, typed, forgotten }: Omit<StartFlags, 'timeout'>
): unknown {
  if (!(error instanceof NodeError)) return error
  const flags = [
    ...(join === null || joinsOnce ? [] : [['--join', '--join -'] as const]),
    ...(isDetached ? [['--detach', '--detach'] as const] : []),
    ...Object.entries({ ...(name === null ? {} : { '--name': [name] }), ...typed }).map(
      ([flag, texts]) => [flag, flagWords(flag, texts)] as const
    ),
    ...forgotten.map((flag) => [flag, noFlag(flag)] as const)
  ]
  const next = error.next.map((step) => {
    // A step with `# on ...` is for another machine.
    if (!/(^| )a2a-node start( |$)/.test(step) || /--help| # on /.test(step)) return step
    const [command = '', ...comment] = step.split(/(?= {3}#)/)
    const missing = flags.filter(([flag]) => !command.split(/[ =]/).some((word) => [flag, noFlag(flag)].includes(word)))
    return [[command, ...missing.map(([, words]) => words)].join(' '), ...comment].join('')
  })
  const { code, message, data, retryable } = error
  return isDeepStrictEqual(next, error.next)
    ? error
    : new NodeError(code, message, { data, retryable, next, cause: error })
}

/** The parts of `[host:]port` that an error may name, ' ' for none; the port 0 is any free one. */
function addressOf([text = '']: readonly string[] = []): { readonly host: string; readonly port: string } {
  const [, host = ' ', port = ' '] = /^(?:(.+):)?(\d+)$/.exec(text) ?? []
  return { host, port: port === '0' ? ' ' : port }
}
