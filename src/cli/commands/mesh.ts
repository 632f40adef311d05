import { readFile } from 'node:fs/promises'
import { NodeError } from '../../kit/errors.js'
import { fileReason } from '../../kit/file-reason.js'
import { isRecord, parseJson } from '../../kit/json.js'
import { nearest, shown } from '../../kit/text.js'
import type { Calls, MeshSettingsInfo } from '../../ports/node-api.js'
import { tierFromText, type Tier } from '../../adapters/control/terms.js'
import { hintedAll, noteProblems } from '../terminal/banner.js'
import type { Action } from '../context.js'
import { EXIT } from '../exit-codes.js'
import type { Output } from '../terminal/output.js'
import { printFacts, tableLines } from '../terminal/render.js'
import { readStdin } from '../stdin.js'
import { utf8Text } from '../utf8-text.js'
import { timeText } from '../words.js'

const MAX_BYTES = 256 * 1024

type Change = Calls['mesh.set']['params']

/** `mesh show`: what the owner set for every node, else what is shipped. */
export const showMesh: Action = async ({ output, api }) => tell(output, await api().call('mesh.settings', {}))

/** Further keys of `mesh show --json`; a stale `serial` is refused, so that no unseen change is undone. */
const SHOWN = { schema: 'a2a-node/mesh@1', keys: ['schema', 'serial', 'changedAt', 'changed', 'problems'] } as const

/** `mesh set <file|->`: the JSON of `mesh show --json`, changed; a member that is not there stays as it is. */
export const setMesh: Action = async ({ output, api }, [file = '']) =>
  tellSet(output, await api().call('mesh.set', changeOf(file, await textOf(file))))

/** `mesh reset`: as shipped. */
export const resetMesh: Action = async ({ output, api }) =>
  tellSet(output, await api().call('mesh.set', { reset: true }))

async function tellSet(output: Output, info: Calls['mesh.set']['result']): Promise<number> {
  if (!info.changed) output.note('that was in force already; nothing was changed')
  return await tell(output, info)
}

async function tell(output: Output, info: MeshSettingsInfo): Promise<number> {
  if (output.json) {
    output.object('mesh@1', { ...info, problems: hintedAll(output, info.problems) })
    return EXIT.ok
  }
  const rows = info.tiers.map(({ from, to, justification }) => [
    from,
    to.length === 0 ? 'nobody' : to.join(', '),
    justification ? 'to open to L0 or L1' : '-'
  ])
  for (const line of await tableLines(output, ['TIER', 'MAY OPEN TO', 'NEEDS A JUSTIFICATION'], rows))
    output.print(line)
  const { enforced, allow } = info.sandboxes
  printFacts(output, [
    ['sandboxes', enforced ? 'enforced' : { text: 'not enforced', style: 'red' }],
    ['reached from all', allow.length === 0 ? 'nothing' : allow.join(', ')],
    ['set', setText(info)]
  ])
  noteProblems(output, info.problems)
  return EXIT.ok
}

/** When it was set. Where the log is not whole it may have been, and this node does not know. */
function setText({ changedAt, serial, problems }: MeshSettingsInfo): string {
  if (changedAt !== null) return `${timeText(changedAt)}, serial ${serial}`
  return problems.length === 0 ? 'as shipped' : 'not known; these are as shipped'
}

async function textOf(file: string): Promise<string> {
  if (file === '-') return await readStdin(MAX_BYTES)
  try {
    const bytes = await readFile(file)
    if (bytes.byteLength <= MAX_BYTES) return utf8Text(bytes, { name: file, again: null })
  } catch (error) {
    if (error instanceof NodeError) throw error
    throw fault(file, `cannot be read: ${fileReason(error)}`)
  }
  throw fault(file, `larger than ${MAX_BYTES} bytes`)
}

function changeOf(file: string, text: string): Change {
  const json = parseJson(text)
  if (!json.ok) throw fault(file, json.reason)
  if (!isRecord(json.value)) throw fault(file, 'not an object with tiers or sandboxes')
  const { schema, serial, tiers, sandboxes } = json.value
  checkKeys(file, json.value, { known: [...SHOWN.keys, 'tiers', 'sandboxes'], of: 'the file' })
  if (schema !== undefined && schema !== SHOWN.schema) throw fault(file, `schema is ${SHOWN.schema}, or left out`)
  if (serial !== undefined && !(Number.isSafeInteger(serial) && Number(serial) >= 0))
    throw fault(file, 'serial is the number that mesh show tells, or left out')
  if (tiers === undefined && sandboxes === undefined) throw fault(file, 'neither tiers nor sandboxes are in it')
  return {
    ...(serial === undefined ? {} : { serial: Number(serial) }),
    ...(tiers === undefined ? {} : { tiers: tiersOf(file, tiers) }),
    ...(sandboxes === undefined ? {} : { sandboxes: sandboxesOf(file, sandboxes) })
  }
}

function tiersOf(file: string, value: unknown): NonNullable<Change['tiers']> {
  if (!Array.isArray(value)) throw fault(file, 'tiers is not a list')
  return value.map((row: unknown) => {
    if (!isRecord(row) || !Array.isArray(row['to']) || typeof row['justification'] !== 'boolean')
      throw fault(file, 'a row of tiers is not {"from": "L1", "to": ["L0"], "justification": false}')
    checkKeys(file, row, { known: ['from', 'to', 'justification'], of: 'a row of tiers' })
    return {
      from: tierOf(file, row['from']),
      to: row['to'].map((one) => tierOf(file, one)),
      justification: row['justification']
    }
  })
}

function tierOf(file: string, value: unknown): Tier {
  const tier = typeof value === 'string' ? tierFromText(value) : null
  if (tier === null) throw fault(file, `a tier is L0, L1, L2 or L3, not ${shown(JSON.stringify(value) ?? '', 40)}`)
  return tier
}

function sandboxesOf(file: string, value: unknown): NonNullable<Change['sandboxes']> {
  if (isRecord(value)) checkKeys(file, value, { known: ['enforced', 'allow'], of: 'sandboxes' })
  const { enforced, allow } = isRecord(value) ? value : {}
  if (typeof enforced !== 'boolean' || !Array.isArray(allow) || !allow.every((one) => typeof one === 'string'))
    throw fault(file, 'sandboxes is not {"enforced": true, "allow": ["agent", "agent@node"]}')
  return { enforced, allow }
}

/** An unknown key is a typing error that would silently have no effect. */
function checkKeys(
  file: string,
  value: object,
  { known, of }: { readonly known: readonly string[]; readonly of: string }
): void {
  const strange = Object.keys(value).find((key) => !known.includes(key))
  if (strange === undefined) return
  const [near] = nearest(strange, known)
  const hint = near === undefined ? ` (${known.join(', ')})` : `; did you mean ${near}?`
  throw fault(file, `${of} has no key ${shown(JSON.stringify(strange), 40)}${hint}`)
}

function fault(file: string, reason: string): NodeError {
  return new NodeError('USAGE', `${file === '-' ? 'standard input' : JSON.stringify(file)}: ${reason}`, {
    next: ['a2a-node mesh show --json']
  })
}
