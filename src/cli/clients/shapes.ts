import { isRecord } from '../../kit/json.js'
import type { ServerEntry } from './entry.js'

/** How a client writes the entry of a server. */
export interface EntryShape {
  /** The members that this program writes. */
  write(entry: ServerEntry, name: string): Readonly<Record<string, unknown>>
  /** An entry of the file with `command` and `args`, beside its further members; any other value as it is. */
  read(found: unknown): unknown
}

/** `command` and `args`, as most clients. */
export const USUAL_SHAPE: EntryShape = {
  write: (entry) => ({ ...entry }),
  read: (found) => found
}

/** OpenCode: `{ type: 'local', command: [program, ...args] }`. */
export const OPENCODE_SHAPE: EntryShape = {
  write: ({ command, args }) => ({ type: 'local', command: [command, ...args] }),
  read: (found) => {
    if (!isRecord(found) || found['type'] !== 'local' || !Array.isArray(found['command'])) return found
    const { type: _type, command, ...rest } = found
    const [program, ...args] = command as readonly unknown[]
    return { ...rest, command: program, args }
  }
}

/** Goose: `{ name, type: 'stdio', cmd, args, enabled: true }`. */
export const GOOSE_SHAPE: EntryShape = {
  write: ({ command, args }, name) => ({ enabled: true, type: 'stdio', name, cmd: command, args }),
  read: (found) => {
    if (!isRecord(found) || found['type'] !== 'stdio') return found
    const { type: _type, name: _name, enabled, cmd, ...rest } = found
    return { ...rest, command: cmd, ...(enabled === true ? {} : { enabled }) }
  }
}
