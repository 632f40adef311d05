import path from 'node:path'
import { commandFault, OPERATOR, RESERVED_ID } from '../../../kit/names/rule.js'
import { isAgentId, isPathStep } from '../../../domain/card/schema.js'

const ID_MAX = 64
/** The form of an id, for people. */
export const ID_RULE = 'must be 1 to 64 characters of a-z, 0-9, dot, underscore and dash'

/** Why no agent of a file may have this id, which has the form of one; null when it may. */
export function idFault(id: string): string | null {
  if (id === OPERATOR || !isAgentId(id)) return RESERVED_ID
  const fault = isPathStep(id) ? null : commandFault(id)
  if (fault !== null) return `cannot be an id: ${fault}`
  return isPathStep(id) ? 'is a step of a path, which no URL can name; choose another name' : null
}

/** Has it the form of an id? Every other name is a display name. */
export function hasIdForm(name: string): boolean {
  return /^[a-z0-9._-]{1,64}$/.test(name)
}

/**
 * Id of the agent of a file: its `name` where that has the form of an id, else the file's name in lower case, each run
 * of other characters a dash. null when neither gives one that an agent may have.
 */
export function agentIdOf(name: unknown, file: string): string | null {
  const id = typeof name === 'string' && hasIdForm(name) ? name : idOfFile(file)
  return id !== '' && idFault(id) === null ? id : null
}

function idOfFile(file: string): string {
  const base = path.basename(file).replace(/(?:\.agent|\.chatmode)?\.md$/i, '')
  const plain = base.normalize('NFKD').replaceAll(/\p{M}/gu, '').toLowerCase()
  return plain
    .replaceAll(/[^a-z0-9._]+/g, '-')
    .slice(0, ID_MAX)
    .replaceAll(/^[-.]+|[-.]+$/g, '')
}
