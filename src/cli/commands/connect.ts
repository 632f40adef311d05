import { tierText } from '../../adapters/control/terms.js'
import { asNodeError, NodeError } from '../../kit/errors.js'
import { shown } from '../../kit/text.js'
import { rightsText } from '../clients/caller.js'
import { checkWritable } from '../clients/client-file.js'
import { unifiedDiff } from '../clients/diff.js'
import { type EntryState, warningsOf } from '../clients/entry.js'
import {
  type ClientPlan,
  editedText,
  findEntry,
  type FoundEntry,
  isThere,
  clientPlan,
  writeEdit
} from '../clients/plan.js'
import { CLIENTS, type CodingClient } from '../clients/places.js'
import { agreed } from '../terminal/agreed.js'
import { askLine, canAsk } from '../terminal/confirm.js'
import type { Action, CommandContext } from '../context.js'
import { EXIT } from '../exit-codes.js'
import { isForgotten, isSet, type Options } from '../options.js'
import { installation } from '../start/install.js'
import type { Output, Style } from '../terminal/output.js'
import { type Cell, printTable } from '../terminal/render.js'
import { tildePath } from '../words.js'

const SCHEMA = 'connect@1'
const SHOWN_PATH = 1000

/** State of the entry in a file; `unreadable` for a file that cannot be parsed. */
type Listed = EntryState | 'unreadable'

const STATES: Readonly<Record<Listed, { readonly text: string; readonly style: Style | null }>> = {
  same: { text: 'yes', style: 'green' },
  absent: { text: 'no', style: null },
  outdated: { text: 'outdated', style: 'yellow' },
  foreign: { text: 'another program', style: 'yellow' },
  unreadable: { text: 'unreadable', style: 'red' }
}

type ConnectDone = 'added' | 'changed' | 'removed' | 'none'

/** `connect`: which clients are on this machine, and whether they start this node. Changes nothing. */
export const listClients: Action = async (context, _args, options) => {
  const { output, env } = context
  const clients = await Promise.all(CLIENTS.map((client) => listed(clientPlan(context, options, client))))
  if (output.json) output.object(SCHEMA, { clients })
  else {
    const rows = clients.map(({ client, title, found, state, file }): Cell[] => {
      const { text, style } = STATES[state]
      const connected = style === null ? text : { text, style }
      return [
        { text: client, style: 'bold' },
        title,
        found ? 'yes' : 'no',
        found ? connected : '-',
        tildePath(file, env['HOME'])
      ]
    })
    await printTable(output, ['CLIENT', 'NAME', 'FOUND', 'CONNECTED', 'FILE'], rows)
    for (const { error } of clients)
      if (error !== null)
        output.note(`${output.paintNote('red', 'error:')} ${shown(error.message, 2000)}  [${error.code}]`)
    const open = clients.find(({ found, state }) => found && (state === 'absent' || state === 'outdated'))
    if (open !== undefined) output.note(`  try: ${output.hint(`a2a-node connect ${open.client}`)}`)
  }
  return EXIT.ok
}

async function listed(plan: ClientPlan) {
  const { client, place, name } = plan
  const about = { client: client.id, title: client.title, file: place.file, server: name, found: isThere(plan) }
  try {
    const found = about.found ? await findEntry(plan) : { state: 'absent' as const, isConnected: false }
    const state: Listed = found.isConnected ? 'same' : found.state
    return { ...about, connected: state === 'same', state, error: null }
  } catch (thrown) {
    const error = asNodeError(thrown).toBody()
    return { ...about, connected: false, state: 'unreadable' as Listed, error }
  }
}

/** `connect <client>`: shows the change of the client's file, asks, writes; with `--remove` the other way round. */
export function connectClient(client: CodingClient): Action {
  return async (context, _args, options) => {
    const [isRemoval, isDryRun] = [isSet(options, 'remove'), isSet(options, 'dryRun')]
    const asked = clientPlan(context, options, client)
    if (!isThere(asked)) {
      if (isRemoval) return tell(context, asked, { action: 'none', diff: '', backup: null, isRemoval, isDryRun })
      throw notThere(asked)
    }
    const plan = clientPlan(context, await withStart(context, options, await findEntry(asked)), client)
    const found = await findEntry(plan)
    const text = editedText(plan, found, isRemoval)
    const diff = unifiedDiff(plan.place.file, found.file.text, text)
    const action = diff === '' ? 'none' : isRemoval ? 'removed' : found.state === 'absent' ? 'added' : 'changed'
    if (!context.output.json) printDiff(context.output, diff)
    const isWritten = action !== 'none' && !isDryRun
    if (isWritten) checkWritable(found.file)
    if (isWritten) await agree(context, options, { plan, found })
    const backup = isWritten ? await writeEdit(found, text) : null
    return tell(context, plan, { action, diff, backup, isRemoval, isDryRun })
  }
}

/** The options with the choice of a person, or of the entry that is there, whether the client starts the node. */
async function withStart({ output }: CommandContext, options: Options, found: FoundEntry): Promise<Options> {
  if (found.isWithoutStart) return { ...options, start: false }
  const isNew = found.state === 'absent' || found.state === 'foreign'
  const isSilent = ['remove', 'dryRun', 'yes'].some((one) => isSet(options, one)) || output.json
  if (!isNew || isSilent || isForgotten(options, 'start') || !canAsk(output)) return options
  const answer = await askLine('start the node with the client when none runs? [Y/n] ')
  return /^no?$/i.test(answer.trim()) ? { ...options, start: false } : options
}

function notThere({ client, place }: ClientPlan): NodeError {
  const looked = place.marks.join(' and ')
  return new NodeError(
    'CLIENT_NOT_FOUND',
    `${client.title} is not on this machine: there is no ${looked}. Start it once, then try again`
  )
}

/** Asks a person to confirm, unless a flag did. @throws NodeError CANCELED; USAGE without a terminal */
async function agree(
  { output }: CommandContext,
  options: Options,
  { plan, found }: { plan: ClientPlan; found: FoundEntry }
): Promise<void> {
  if (found.state === 'foreign' && !isSet(options, 'yes'))
    output.note(`${plan.name} exists already and starts another program.`)
  if (await agreed(output, options, { question: `write ${shown(plan.place.file, SHOWN_PATH)}?` })) return
  throw new NodeError('CANCELED', 'nothing was written', {
    next: [`${output.typed ?? `a2a-node connect ${plan.client.id}`} --dry-run`]
  })
}

function printDiff(output: Output, diff: string): void {
  if (diff === '') return
  for (const line of diff.split('\n')) {
    // White space at the beginning of a line is what the diff is about.
    const indent = /^[ +-]?[ \t]*/.exec(line)?.[0] ?? ''
    output.print(output.paint(lineStyle(line), indent + shown(line.slice(indent.length), Number.POSITIVE_INFINITY)))
  }
}

function lineStyle(line: string): Style | null {
  if (line.startsWith('+++') || line.startsWith('---')) return 'bold'
  if (line.startsWith('@@')) return 'cyan'
  return line.startsWith('+') ? 'green' : line.startsWith('-') ? 'red' : null
}

interface ConnectOutcome {
  readonly action: ConnectDone
  readonly diff: string
  readonly backup: string | null
  readonly isRemoval: boolean
  readonly isDryRun: boolean
}

async function tell(
  { output }: CommandContext,
  { client, place, name, entry, rights }: ClientPlan,
  outcome: ConnectOutcome
): Promise<number> {
  const { action, diff, backup, isRemoval, isDryRun } = outcome
  const { file } = place
  const rightsJson = isRemoval ? null : { ...rights, tier: tierText(rights.tier), scopes: ['read', 'send'] }
  const warnings = isRemoval ? [] : warningsOf(entry, (await installation()).here)
  if (output.json) {
    output.object(SCHEMA, {
      client: client.id,
      file,
      server: name,
      action,
      dryRun: isDryRun,
      backup,
      diff,
      warnings,
      rights: rightsJson
    })
    return EXIT.ok
  }
  for (const warning of warnings) output.note(`${output.paintNote('yellow', 'warning:')} ${warning}`)
  if (!isRemoval)
    output.note(
      `${client.title} is a caller of its own: ${rightsText(rights)}. More or less: --tier, --sandbox, --agents.`
    )
  if (action === 'none')
    output.print(`nothing to do: ${name} is ${isRemoval ? 'not' : 'already'} in ${shown(file, SHOWN_PATH)}`)
  else if (isDryRun) output.note('nothing was written (--dry-run)')
  else {
    output.print(`${action === 'removed' ? 'removed from' : 'written:'} ${shown(file, SHOWN_PATH)}`)
    if (backup !== null) output.print(`before:  ${shown(backup, SHOWN_PATH)}`)
    output.note(action === 'removed' ? `${client.title} goes on with it until it is started again.` : client.after)
  }
  return EXIT.ok
}
