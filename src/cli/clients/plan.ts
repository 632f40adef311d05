import { existsSync, realpathSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import type { CallerTerms } from '../../adapters/control/caller-terms.js'
import { NodeError } from '../../kit/errors.js'
import { shellWord } from '../../kit/text.js'
import type { CommandContext } from '../context.js'
import { isForgotten, isSet, type Options, textOption } from '../options.js'
import { type ClientFile, readClientFile, removeClientFile, writeClientFile } from './client-file.js'
import { callerTerms, callerWords } from './caller.js'
import {
  type EntryState,
  type ServerEntry,
  type ServerFormat,
  isSameButRights,
  NO_START,
  serverEntry,
  serverName,
  stableProgram,
  stateOf
} from './entry.js'
import { ownProgram } from '../start/own-package.js'
import { type CodingClient, type ClientPlace, clientPlace } from './places.js'
import { USUAL_SHAPE } from './shapes.js'

const USUAL_NAME = 'a2a-node'

/** The planned edit for one client. */
export interface ClientPlan {
  readonly client: CodingClient
  readonly place: ClientPlace
  readonly name: string
  readonly entry: ServerEntry
  /** The rights of the client on the node. */
  readonly rights: CallerTerms
}

/** A client's file and its entry. */
export interface FoundEntry {
  readonly file: ClientFile
  readonly format: ServerFormat
  readonly state: EntryState
  /** The entry is ours and starts no node. */
  readonly isWithoutStart: boolean
  /** The file has nothing but the entry, as this program writes it. */
  readonly isMadeHere: boolean
  /** The entry starts what is wanted, whatever rights it gives. */
  readonly isConnected: boolean
}

/** The plan of a command line for a client. @throws NodeError USAGE */
export function clientPlan(context: CommandContext, options: Options, client: CodingClient): ClientPlan {
  const named = context.home ?? context.env['A2A_NODE_HOME'] ?? ''
  const rights = callerTerms(options, client.id)
  const sources = {
    execPath: stableProgram(process.execPath, realpath),
    bin: ownProgram(),
    caller: [...callerWords(rights), ...(isForgotten(options, 'start') ? [NO_START] : [])],
    // The client runs in a directory of its own.
    home: named === '' ? null : path.resolve(named),
    isPortable: isSet(options, 'portable')
  }
  return {
    client,
    place: clientPlace(client.id, { platform: process.platform, env: context.env, home: os.homedir() }),
    name: serverName(textOption(options, 'serverName') ?? USUAL_NAME),
    entry: serverEntry(client, sources),
    rights
  }
}

/** Is the client on this machine? */
export function isThere({ place }: Pick<ClientPlan, 'place'>): boolean {
  return place.marks.some((mark) => existsSync(mark))
}

/** Reads a client's file. @throws NodeError CONFIG_INVALID, NO_PERMISSION */
export async function findEntry({ client, place, name, entry }: ClientPlan): Promise<FoundEntry> {
  const file = await readClientFile(place.file)
  const format = await formatOf(client)
  const found = inFile(place, () => format.find(file.text ?? '', name))
  const state = stateOf(found, entry)
  const isOurs = state === 'same' || state === 'outdated'
  return {
    file,
    format,
    state,
    isWithoutStart: isOurs && (found as ServerEntry).args.includes(NO_START),
    isMadeHere: isOurs && isPlain(found as object) && format.put('', name, found as ServerEntry) === file.text,
    isConnected: isSameButRights(found, entry)
  }
}

/** Has an entry of ours no keys of the user? */
function isPlain(found: object): boolean {
  return Object.keys(found).every((key) => key === 'type' || key === 'command' || key === 'args')
}

/**
 * The text of the file after the change.
 * @throws NodeError CONFIG_INVALID, CONFLICT when the entry to take out is not ours
 */
export function editedText({ client, place, name, entry }: ClientPlan, found: FoundEntry, isRemoval: boolean): string {
  const text = found.file.text ?? ''
  if (!isRemoval) return found.state === 'same' ? text : inFile(place, () => found.format.put(text, name, entry))
  if (found.state === 'foreign') {
    throw new NodeError('CONFLICT', `${name} of ${place.file} starts another program; it is not taken out`, {
      next: [`a2a-node connect ${client.id} --dry-run`, `$EDITOR ${shellWord(place.file)}`]
    })
  }
  return found.isMadeHere ? '' : inFile(place, () => found.format.remove(text, name))
}

/**
 * Writes the text of {@link editedText}; a file that this program made goes with its entry.
 * @returns the path of a copy of the old file; null for none
 * @throws NodeError CONFLICT, NO_PERMISSION, DISK_FULL
 */
export async function writeEdit(
  { file, isMadeHere }: FoundEntry,
  text: string,
  again?: string
): Promise<string | null> {
  if (isMadeHere && text === '' && (await removeClientFile(file, again))) return null
  return await writeClientFile(file, text, { now: Date.now(), ...(again === undefined ? {} : { again }) })
}

async function formatOf({ format, container, isStrict, shape = USUAL_SHAPE }: CodingClient): Promise<ServerFormat> {
  if (format === 'toml') return (await import('./toml-format.js')).tomlFormat(container)
  if (format === 'yaml') return (await import('./yaml-format.js')).yamlFormat(container, shape)
  return (await import('./json-format.js')).jsonFormat(container, { isStrict: isStrict === true, shape })
}

/** Says of a fault in which file it is. */
function inFile<T>({ file }: ClientPlace, act: () => T): T {
  try {
    return act()
  } catch (error) {
    if (!(error instanceof NodeError) || error.code !== 'CONFIG_INVALID') throw error
    throw new NodeError('CONFIG_INVALID', `${file}: ${error.message}`, {
      cause: error,
      next: [`$EDITOR ${shellWord(file)}`]
    })
  }
}

function realpath(file: string): string | null {
  try {
    return realpathSync(file)
  } catch {
    return null
  }
}
