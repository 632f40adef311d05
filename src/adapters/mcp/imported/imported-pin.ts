import type { Kept, Remembered as RememberedOf } from '../../../domain/pinning/pinned.js'
import { isRecord } from '../../../kit/json.js'
import type { CompileSchema } from '../../../kit/sign.js'
import type { NodeStore } from '../../../ports/storage.js'
import { type ImportedTool, listHash, readList } from './imported-list.js'

/** Tools of a server, as they are pinned. */
export interface ToolList {
  readonly tools: readonly ImportedTool[]
}

/** The tool list of a server that is in force, as the home keeps it. */
export type Accepted = Kept<ToolList>

/** What the home has of a server's list. */
export type PinnedList = RememberedOf<ToolList>

/** Keeps the accepted list of one server in the home: what it offers when it is offline, and what its next list is compared with. */
export class ImportedPin {
  readonly #store: NodeStore
  readonly #name: string
  readonly #compileSchema: CompileSchema

  constructor(server: string, parts: { readonly store: NodeStore; readonly compileSchema: CompileSchema }) {
    this.#store = parts.store
    this.#name = `mcp-${server}`
    this.#compileSchema = parts.compileSchema
  }

  /** Reads it. Never rejects: what cannot be read is lost. */
  async read(): Promise<PinnedList> {
    try {
      const value = await this.#store.read<unknown>(this.#name)
      if (value === null) return { kind: 'none' }
      const accepted = await acceptedOf(value, this.#compileSchema)
      return accepted === null ? { kind: 'lost' } : { kind: 'kept', accepted }
    } catch {
      return { kind: 'lost' }
    }
  }

  /** @throws NodeError DISK_FULL, NO_PERMISSION */
  async write({ tools, by }: Accepted): Promise<void> {
    await this.#store.write(this.#name, { by, hash: listHash(tools), tools })
  }
}

/** Files of the home are read as anything else: by the same bounds as a list of the server. */
async function acceptedOf(value: unknown, compileSchema: CompileSchema): Promise<Accepted | null> {
  if (!isRecord(value) || !Array.isArray(value['tools'])) return null
  const { by, hash, tools } = value
  if (by !== 'config' && by !== 'first-sight' && by !== 'accepted') return null
  const given = tools.map((tool: unknown) =>
    isRecord(tool)
      ? { ...tool, outputSchema: tool['outputSchema'] ?? undefined, annotations: { readOnlyHint: tool['claimsReadOnly'] === true } }
      : tool
  )
  const list = await readList(given, compileSchema)
  return list.faults.length === 0 && listHash(list.tools) === hash ? { tools: list.tools, by } : null
}
