import { Command, type ErrorOptions, Option } from 'commander'
import { NodeError } from '../kit/errors.js'
import { nearest } from '../kit/text.js'
import { durationOption, type Options } from './options.js'
import { noValueText } from './typed.js'
import type { Sink } from './terminal/terminal.js'
import { withListStep, withLongerStep } from './timeouts.js'
import { COMMANDS, type CommandRow, GLOBAL_OPTIONS, type OptionSpec } from './terminal/table.js'

/** The verb of lists; `list` is the same. */
const LIST = 'ls'
/** The verb that prints the help of a command. */
const HELP = 'help'

const EXITS = `Exit codes: 0 done, 1 the task or swarm failed, 2 wrong usage, 3 no node runs, 4 not found or ambiguous, 5 denied,
6 timed out, 7 peer offline, 8 partly done, 9 conflict, 70 a bug, 78 bad config or file, 130 and 143 ended by a signal.`

const UPDATE = {
  about: 'install a newer version the way this one was installed, then start the node again',
  next: ['a2a-node --version']
}
const LISTS = {
  about: 'each list has a command of its own',
  next: ['a2a-node peers', 'a2a-node agents', 'a2a-node tasks']
}
/** Commands that people know from other programs, and their replacement here. */
const OTHER_WORDS: Readonly<Record<string, { readonly about: string; readonly next: readonly string[] }>> = {
  join: { about: 'a node joins a mesh when it starts', next: ['a2a-node start --join <code>'] },
  init: { about: 'the first start makes the home of a node', next: ['a2a-node start'] },
  restart: { about: 'stop the node, then start it', next: ['a2a-node stop', 'a2a-node start --detach'] },
  update: UPDATE,
  upgrade: UPDATE,
  ls: LISTS,
  list: LISTS,
  run: {
    about: 'a swarm runs a goal, one agent runs one input',
    next: ['a2a-node swarm run --help', 'a2a-node call --help']
  }
}

/**
 * A command line with each pair of words after an option as one value: `--results files DIR` becomes
 * `--results files=DIR`.
 */
export function joinPairs(argv: readonly string[]): string[] {
  const pairs = new Set(COMMANDS.flatMap(pairsOf))
  const joined: string[] = []
  for (let at = 0; at < argv.length; at++) {
    const word = argv[at] ?? ''
    if (word === '--') return [...joined, ...argv.slice(at)]
    const next = argv[at + 1]
    const isPair = pairs.has(word.startsWith('--') ? word : `${argv[at - 1] ?? ''}=${word}`)
    if (isPair && next !== undefined && !next.startsWith('-')) {
      joined.push(`${word}=${next}`)
      at++
    } else joined.push(word)
  }
  return joined
}

/** The values of a command's options that a second word completes, as `--option=value`. */
function pairsOf({ options = [], sub = [] }: CommandRow): string[] {
  const own = options.flatMap(({ flags, pairs = [] }) =>
    pairs.map((value) => `${/--[\w-]+/.exec(flags)?.[0]}=${value}`)
  )
  return [...own, ...sub.flatMap(pairsOf)]
}

/** Called when a command line was understood. */
export type CommandRun = (...given: [CommandRow, readonly string[], Options, AddUsage]) => Promise<void>

/** Adds the usage line of the command to an error of wrong usage that has none; gives every other error back. */
export type AddUsage = (error: NodeError) => NodeError

/** A command that tells of wrong usage by a NodeError with its own usage line. */
class UsageCommand extends Command {
  override createCommand(name?: string): Command {
    return new UsageCommand(name)
  }

  override error(message: string, options?: ErrorOptions): never {
    const [word] = this.args
    // Of a command that is not known no option can be: the command is what was mistyped.
    const isWord = word !== undefined && !word.startsWith('-') && this.commands.length > 0
    if (options?.code === 'commander.unknownOption' && isWord) throw unknownCommand(this, word)
    if (options?.code === 'commander.optionMissingArgument') throw usageError(this, withoutValue(this, message))
    throw usageError(this, message.replace(/^error: /, '').replace(/\n\(Did you mean (.*)\)$/s, ' (did you mean $1)'))
  }
}

/** Builds the parser from the table; `out` gets its help. @throws NodeError USAGE while parsing a wrong command line */
export function buildProgram(run: CommandRun, { out }: { readonly out: Sink } = { out: process.stdout }): Command {
  const program = new UsageCommand('a2a-node').configureOutput({ writeOut: (text) => void out.write(text) })
  program.description('Let the agents on your own machines find each other, trust each other and work together.')
  program.allowExcessArguments().exitOverride().showSuggestionAfterError()
  // Commander counts the options of every parent as global: those of `peers` are none of `peers revoke`.
  const visibleGlobalOptions = (command: Command): Option[] =>
    command === program ? [] : program.options.filter((one) => !one.hidden)
  program.configureHelp({ showGlobalOptions: true, sortSubcommands: false, visibleGlobalOptions })
  program.option('-V, --version', 'print the version')
  for (const option of GLOBAL_OPTIONS) program.addOption(optionOf(option))
  for (const spec of COMMANDS) addCommand(program, spec, run)
  program.addHelpText('after', `\n${EXITS}\n\nBegin with: a2a-node start`)
  program.action(() => {
    const [word, ...path] = program.args
    if (word !== undefined && word !== HELP) throw unknownCommand(program, word)
    commandAt(program, path).outputHelp()
  })
  return program
}

/** The command of a path below another one. @throws NodeError USAGE when there is none */
function commandAt(parent: Command, [word, ...path]: readonly string[]): Command {
  if (word === undefined) return parent
  const found = parent.commands.find((one) => one.name() === word || one.aliases().includes(word))
  if (found === undefined) throw unknownCommand(parent, word)
  return commandAt(found, path)
}

function addCommand(parent: Command, spec: CommandRow, run: CommandRun): void {
  const command = parent.command(spec.name).description(spec.about)
  if (spec.name === LIST) command.alias('list')
  if (spec.group !== undefined) command.helpGroup(`${spec.group}:`)
  if (spec.args !== undefined) command.arguments(spec.args)
  for (const option of spec.options ?? []) command.addOption(optionOf(option))
  if (spec.more !== undefined) command.addHelpText('after', `\n${spec.more.join('\n')}`)
  for (const sub of spec.sub ?? []) addCommand(command, sub, run)
  // A word that is no subcommand must be called that, not an argument too many.
  command.allowExcessArguments(spec.sub !== undefined)
  command.action(async () => {
    const [word, ...path] = command.args
    if (spec.sub !== undefined && word === HELP) return commandAt(command, path).outputHelp()
    if (spec.sub !== undefined && word !== undefined) throw unknownCommand(command, word)
    // A group without a subcommand prints its list, where there is one.
    const meant = spec.load === undefined ? spec.sub?.find(({ name }) => name === LIST) : spec
    if (meant === undefined)
      throw usageError(command, `which one: ${(spec.sub ?? []).map((one) => one.name).join(', ')}?`)
    const given = command.optsWithGlobals()
    await run(meant, command.args, given, (error) => timedOut(withUsage(command, error), command, meant))
  })
}

/** The steps after a timeout: the list of the command, and a longer time. */
function timedOut(error: NodeError, command: Command, meant: CommandRow): NodeError {
  const given = command.optsWithGlobals<Options>()
  const isReadable = error.code !== 'USAGE'
  return withLongerStep(
    withListStep(error, listOf(command)),
    meant,
    isReadable ? durationOption(given, 'timeout') : undefined
  )
}

function optionOf(spec: OptionSpec): Option {
  const option = new Option(spec.flags, spec.about)
  if (spec.choices !== undefined) option.choices(spec.choices)
  if (spec.hidden === true) option.hideHelp()
  if (spec.repeat === true)
    option.argParser((value: string, before: string[] | false | undefined) => [...(before || []), value])
  return option
}

function unknownCommand(parent: Command, word: string): NodeError {
  const other = parent.parent === null && Object.hasOwn(OTHER_WORDS, word) ? OTHER_WORDS[word] : undefined
  if (other !== undefined) {
    const next = [...other.next, `${pathOf(parent)} --help`]
    return new NodeError('USAGE', `there is no command '${word}': ${other.about}`, {
      data: { usage: `${pathOf(parent)} ${parent.usage()}` },
      next
    })
  }
  const near = nearest(
    word,
    parent.commands.map((one) => one.name())
  )
  const hint = near.length === 0 ? '' : ` (did you mean ${near.join(' or ')}?)`
  return usageError(parent, `unknown command '${word}'${hint}`)
}

/**
 * The fault of the option without a value that a message of the parser names, with the word that follows the option.
 */
function withoutValue(command: Command, message: string): string {
  const [, short, long] = /'(?:(-\w), )?(--[\w-]+)/.exec(message) ?? []
  let root: Command & { rawArgs?: readonly string[] } = command
  while (root.parent !== null) root = root.parent
  // The parser has taken global options out of the words of the command.
  const words = root.rawArgs ?? []
  const next = words.find((_, at) => at > 0 && [short, long].includes(words[at - 1] ?? ''))
  return noValueText(long ?? short ?? '', next)
}

function usageError(command: Command, message: string): NodeError {
  const path = pathOf(command)
  const quote =
    message.startsWith('too many arguments') && path.endsWith('swarm run')
      ? "; a glob must be quoted: --items 'src/*.ts'"
      : ''
  return new NodeError('USAGE', `${message.replace(/\.$/, '')}${quote}`, {
    data: { usage: `${path} ${command.usage()}` },
    next: [`${path} --help`]
  })
}

function withUsage(command: Command, error: NodeError): NodeError {
  if (error.code !== 'USAGE' || (error.data !== undefined && error.data !== null)) return error
  const { data, next } = usageError(command, error.message)
  const isOwn = error.next.some((one) => one !== 'a2a-node --help')
  return new NodeError('USAGE', error.message, { data, next: isOwn ? error.next : next, cause: error })
}

/**
 * The command that lists the things of a group, or shows the only one; null where the group has none, or for that
 * command itself.
 */
function listOf(command: Command): string | null {
  const group = command.commands.length > 0 ? command : command.parent
  if (group === null || group.parent === null) return null
  const found = group.commands.find((one) => one.name() === LIST) ?? group.commands.find(isWhole)
  return found === undefined || found === command ? null : pathOf(found)
}

function isWhole(command: Command): boolean {
  return command.name() === 'show' && command.registeredArguments.length === 0
}

function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`
}
