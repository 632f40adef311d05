import path from 'node:path'
import { type ParseError, parse as parseJson } from 'jsonc-parser'
import { parse as parseToml } from 'smol-toml'
import { NodeError } from '../../kit/errors.js'
import { isRecord } from '../../kit/json.js'
import { shellWord } from '../../kit/text.js'
import type { ClientFile } from './client-file.js'

/** A server in a client's file. */
export interface FoundServer {
  readonly name: string
  readonly entry: unknown
  /** Directory of the project that it belongs to; null where the file does not say one. */
  readonly project: string | null
}

/** Objects that hold servers by name: of Claude, Cursor and Gemini CLI; of VS Code, also in its settings; of Codex. */
const CONTAINERS = [['mcpServers'], ['servers'], ['mcp', 'servers'], ['mcp_servers']]

/**
 * The servers of all such objects of a client's file, those of the projects in Claude Code's own file included. TOML
 * for a name that ends with `.toml`, else JSON with comments. @throws NodeError CONFIG_INVALID
 */
export function serversIn({ file, text }: ClientFile): readonly FoundServer[] {
  const next = [`$EDITOR ${shellWord(file)}`]
  if (text === null)
    throw new NodeError('CONFIG_INVALID', `${file} is not there`, { next: ['a2a-node mcp import --help'] })
  const root = valuesOf(file, text, next)
  const projects = Object.entries(recordAt(root, ['projects']) ?? {})
  const containers = [
    ...CONTAINERS.map((steps) => ({ project: null, servers: recordAt(root, steps) })),
    ...projects.map(([project, one]) => ({ project, servers: recordAt(one, ['mcpServers']) }))
  ]
  if (containers.some(({ servers }) => servers !== null))
    return containers.flatMap(({ project, servers }) =>
      Object.entries(servers ?? {}).map(([name, entry]) => ({ name, entry, project }))
    )
  const names = CONTAINERS.map((steps) => steps.join('.')).join(', ')
  throw new NodeError('CONFIG_INVALID', `${file} has no MCP servers: none of ${names} is an object`, { next })
}

function recordAt(root: unknown, steps: readonly string[]): Readonly<Record<string, unknown>> | null {
  const found = steps.reduce<unknown>(
    (value, step) => (isRecord(value) && Object.hasOwn(value, step) ? value[step] : undefined),
    root
  )
  return isRecord(found) ? found : null
}

function valuesOf(file: string, text: string, next: readonly string[]): unknown {
  const errors: ParseError[] = []
  const isToml = path.extname(file).toLowerCase() === '.toml'
  try {
    if (isToml) return plain(parseToml(text))
    const value = parseJson(text, errors, { allowTrailingComma: true }) as unknown
    const [error] = errors
    if (error === undefined) return plain(value)
    const line = text.slice(0, error.offset).split('\n').length
    throw new NodeError('CONFIG_INVALID', `${file}:${line} is no JSON`, { next })
  } catch (error) {
    if (error instanceof NodeError) throw error
    throw new NodeError('CONFIG_INVALID', `${file} cannot be read as ${isToml ? 'TOML' : 'JSON'}`, {
      cause: error,
      next
    })
  }
}

/** Without what a member `__proto__` does to the objects that a parser makes. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value)) as unknown
}
