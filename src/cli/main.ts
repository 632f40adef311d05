import { CommanderError } from 'commander'
import { asNodeError, NodeError } from '../kit/errors.js'
import { fileReason } from '../kit/file-reason.js'
import { type Action, commandContext } from './context.js'
import { EXIT, EXIT_CODES } from './exit-codes.js'
import { durationOption, type Options, textOption } from './options.js'
import { type ColorMode, Output, type OutputOptions } from './terminal/output.js'
import { buildProgram, type CommandRun, joinPairs } from './program.js'
import { checkTyped } from './typed.js'

/** Output and environment of a command line. */
export interface Surroundings extends Pick<OutputOptions, 'out' | 'err' | 'env'> {
  /** Called with the name of the command before it runs. */
  onCommand?(name: string): void
  /** Actions that replace those of the commands with these names. */
  readonly actions?: Readonly<Record<string, Action>>
}

/**
 * Runs one command line (without node and script) as this process. Never rejects; sets the exit code of the process.
 */
export async function main(argv: readonly string[]): Promise<void> {
  const { stdout: out, stderr: err, env } = process
  // A reader that went away (`| head`) is no error of ours. A node lives on without one: its peers need it still.
  let isNode = false
  err.on('error', () => {})
  out.on('error', (error: NodeJS.ErrnoException) => {
    const isUnread = error.code === 'EPIPE'
    const exitCode = isUnread ? EXIT.ok : fail(outputOf({ out, err, env }, { json: isJson(argv) }), unwritten(error))
    if (!isNode) process.exit(exitCode)
  })
  process.exitCode = await runCommandLine(argv, { out, err, env, onCommand: (name) => (isNode = name === 'start') })
}

/** Runs one command line (without node and script). Never rejects; gives the exit code. */
export async function runCommandLine(given: readonly string[], at: Surroundings): Promise<number> {
  const argv = joinPairs(given)
  let exitCode: number = EXIT.ok
  const run: CommandRun = async (...parsed) => {
    at.onCommand?.(parsed[0].name)
    exitCode = await runCommand({ at, typed: argv }, ...parsed)
  }
  try {
    if (isVersionAsked(argv)) await printVersion(argv, at)
    else await buildProgram(run, at).parseAsync(argv, { from: 'user' })
    return exitCode
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage
    return fail(outputOf(at, { json: isJson(argv), home: typedHome(argv) }), error)
  }
}

type CommandLine = { readonly at: Surroundings; readonly typed: readonly string[] }

async function runCommand(
  { at, typed }: CommandLine,
  ...[spec, args, options, addUsage]: Parameters<CommandRun>
): Promise<number> {
  const output = outputOf(at, options, typed)
  const home = textOption(options, 'home') ?? null
  let context = commandContext({ output, home, env: at.env })
  try {
    checkTyped(spec, args, options)
    context = commandContext({ output, home, env: at.env, timeoutMs: durationOption(options, 'timeout') })
    const action = at.actions?.[spec.name] ?? (await spec.load?.())
    return action === undefined ? EXIT.bug : await action(context, args, options)
  } catch (error) {
    const known = addUsage(asNodeError(error))
    const { withSuggestion } = await import('./suggest.js')
    return fail(output, await withSuggestion(known, context, [...args, textOption(options, 'capability') ?? '']))
  }
}

function outputOf({ out, err, env }: Surroundings, options: Options, typed: readonly string[] = []): Output {
  const color = (options['color'] ?? 'auto') as ColorMode
  return new Output({
    json: options['json'] === true,
    color,
    out,
    err,
    env,
    home: textOption(options, 'home') ?? null,
    typed
  })
}

/** Tells of an error; gives its exit code. */
function fail(output: Output, thrown: unknown): number {
  const error = asNodeError(thrown)
  output.error(error.toBody())
  // A bug: whoever reports it needs the place.
  if (error.code === 'INTERNAL' && !output.json && error.cause instanceof Error) output.note(error.cause.stack ?? '')
  return EXIT_CODES[error.code]
}

/** The data of a command was not written: whoever reads it would take less for all. */
function unwritten(error: NodeJS.ErrnoException): NodeError {
  const isFull = error.code === 'ENOSPC' || error.code === 'EDQUOT' || error.code === 'EFBIG'
  const details = { cause: error, next: isFull ? ['df -h'] : [] }
  return new NodeError(
    isFull ? 'DISK_FULL' : 'INTERNAL',
    `the output could not be written: ${fileReason(error)}`,
    details
  )
}

function isVersionAsked(argv: readonly string[]): boolean {
  return argv[0] !== undefined && ['-V', '-v', '--version', 'version'].includes(argv[0])
}

async function printVersion(argv: readonly string[], at: Surroundings): Promise<void> {
  const [{ readFile }, { ownRoot }] = await Promise.all([import('node:fs/promises'), import('./start/own-package.js')])
  const { version } = JSON.parse(await readFile(`${ownRoot()}/package.json`, 'utf8')) as {
    version: string
  }
  const output = outputOf(at, { json: argv.includes('--json') })
  if (output.json) output.object('version@1', { version })
  else output.print(version)
}

/** `--home` of a command line that was not understood. */
function typedHome(argv: readonly string[]): string | undefined {
  const words = beforeDashes(argv)
  const joined = words.find((word) => word.startsWith('--home='))
  if (joined !== undefined) return joined.slice('--home='.length)
  const place = words.indexOf('--home')
  return place === -1 ? undefined : words[place + 1]
}

function isJson(argv: readonly string[]): boolean {
  return beforeDashes(argv).includes('--json')
}

function beforeDashes(argv: readonly string[]): readonly string[] {
  const end = argv.indexOf('--')
  return end === -1 ? argv : argv.slice(0, end)
}
