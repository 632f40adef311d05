import { open } from 'node:fs/promises'
import type { CST } from 'yaml'
import { NodeError } from '../kit/errors.js'
import { fileReason } from '../kit/file-reason.js'
import { JSON_LIMITS } from '../kit/json.js'
import { shown } from '../kit/text.js'
import { yamlReason } from '../kit/yaml-reason.js'

const MAX_BYTES = 262_144
/** Reported syntax faults; further ones are counted. */
const FAULTS_MAX = 32

/** The YAML of a plan, not yet checked as one. */
export interface PlanFile {
  readonly value: unknown
  /** `file:line` of a place in it, by its keys and indexes; of the nearest one that is there. */
  placeOf(path: readonly (string | number)[]): string
}

/**
 * Reads the YAML of a plan: no aliases, no tags of its own.
 * @throws NodeError USAGE when it cannot be read, is too large, or is no YAML.
 */
export async function readPlanFile(file: string): Promise<PlanFile> {
  return await parsePlan(await readText(file), file)
}

async function readText(file: string): Promise<string> {
  const handle = await open(file, 'r').catch((error: unknown) => {
    throw unreadable(file, error)
  })
  try {
    const bytes = new Uint8Array(MAX_BYTES + 1)
    let read = 0
    for (let more = 1; more > 0 && read < bytes.length; read += more) more = (await handle.read(bytes, read)).bytesRead
    if (read > MAX_BYTES) throw new NodeError('USAGE', `${shown(file, 4096)}: a plan has at most ${MAX_BYTES} bytes`)
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(0, read))
  } catch (error) {
    throw error instanceof NodeError ? error : unreadable(file, error)
  } finally {
    await handle.close()
  }
}

function unreadable(file: string, error: unknown): NodeError {
  // Of a decoder a TypeError says that the bytes are no text.
  const reason = error instanceof TypeError ? 'it is no UTF-8 text' : fileReason(error)
  return new NodeError('USAGE', `cannot read the plan ${shown(file, 4096)}: ${reason}`, {
    cause: error,
    next: ['a2a-node swarm run --help']
  })
}

/** The error of a faulty plan file. One fault is the message; several are in the data with their `file:line`. */
export function faultyPlan(
  faults: readonly { readonly place: string; readonly reason: string }[],
  more: number
): NodeError {
  const count = faults.length + more
  const [first] = faults
  const message = count === 1 ? `${first?.place}: ${first?.reason}` : `the plan has ${count} faults`
  return new NodeError('USAGE', message, { data: { faults, moreFaults: more }, next: ['a2a-node swarm run --help'] })
}

/**
 * Is a list or map nested deeper than JSON may be? Iterative, as the parser of tokens is; what makes values of them is
 * not.
 */
function isTooDeep(tokens: Iterable<CST.Token>): boolean {
  const stack = [...tokens].map((token) => ({ token, depth: 0 }))
  for (let top = stack.pop(); top !== undefined; top = stack.pop()) {
    const { token, depth } = top
    if ('items' in token) {
      if (depth >= JSON_LIMITS.maxDepth) return true
      for (const { key, value } of token.items as readonly { key?: CST.Token | null; value?: CST.Token }[])
        for (const one of [key, value]) if (one) stack.push({ token: one, depth: depth + 1 })
    } else if (token.type === 'document' && token.value !== undefined) stack.push({ token: token.value, depth })
  }
  return false
}

/** Parses the text of a plan. @throws NodeError USAGE with the lines of syntax faults */
export async function parsePlan(text: string, file: string): Promise<PlanFile> {
  const yaml = await import('yaml')
  if (isTooDeep(new yaml.Parser().parse(text)))
    throw new NodeError('USAGE', `${shown(file, 4096)}: a plan is nested no deeper than ${JSON_LIMITS.maxDepth}`)
  const lines = new yaml.LineCounter()
  const doc = yaml.parseDocument(text, { lineCounter: lines, prettyErrors: false, schema: 'core' })
  const lineOf = (offset: number): string => `${shown(file, 4096)}:${lines.linePos(offset).line}`
  if (doc.errors.length > 0) {
    const printed = doc.errors
      .slice(0, FAULTS_MAX)
      .map((error) => ({ place: lineOf(error.pos[0]), reason: yamlReason(error.code) }))
    throw faultyPlan(printed, doc.errors.length - printed.length)
  }
  let value: unknown
  try {
    // No aliases: a few lines of them could grow without bound.
    value = doc.toJS({ maxAliasCount: 0 })
  } catch (cause) {
    throw new NodeError('USAGE', `${shown(file, 4096)}: aliases are not allowed in a plan`, { cause })
  }
  if (value === null || value === undefined)
    throw new NodeError('USAGE', `the plan ${shown(file, 4096)} is empty`, { next: ['a2a-node swarm run --help'] })
  const rangeOf = (path: readonly (string | number)[]): number | null => {
    const parent = path.length === 0 ? null : doc.getIn(path.slice(0, -1), true)
    const pair = yaml.isMap(parent)
      ? parent.items.find(({ key }) => yaml.isScalar(key) && key.value === path.at(-1))
      : undefined
    const node = pair === undefined ? doc.getIn(path, true) : pair.key
    return yaml.isNode(node) ? (node.range?.[0] ?? null) : null
  }
  return {
    value,
    placeOf(path) {
      for (let length = path.length; length > 0; length--) {
        const at = rangeOf(path.slice(0, length))
        if (at !== null) return lineOf(at)
      }
      return lineOf(0)
    }
  }
}
