import fs from 'node:fs/promises'
import type { BrokenChain, ReadLine } from '../../maintenance/audit.js'
import { isKeyText, shortId } from '../../kit/ids.js'
import { NodeError } from '../../kit/errors.js'
import { shellWord, shown } from '../../kit/text.js'
import type { NodeRef } from '../../ports/node-api.js'
import type { Action, CommandContext } from '../context.js'
import { EXIT } from '../exit-codes.js'
import { given, isSet, type Options, sinceOption, textOption } from '../options.js'
import { type NodeNames, nodeNames } from '../node-names.js'
import { MIN_ID_CHARACTERS } from '../../kit/resolve-id.js'
import type { Output, Style } from '../terminal/output.js'
import { logLine } from '../terminal/log-line.js'
import { plural } from '../terminal/render.js'

const CANDIDATES_MAX = 20
const HINT_MAX = 10_000

/** `audit`: the lines of the audit log; with `--verify` the check of its chains. */
export const audit: Action = async (context, _args, options) => {
  const { home } = context.paths()
  if (!(await isThere(home))) throw new NodeError('NODE_NOT_RUNNING', `there is no node in ${home}`)
  return isSet(options, 'verify') ? await verify(context, options) : await list(context, options)
}

/** A home that is not there, of a mistyped `--home`, must not pass for a log that holds. */
async function isThere(home: string): Promise<boolean> {
  return await fs.stat(home).then(
    () => true,
    (error: unknown) => !(error instanceof Error && 'code' in error && error.code === 'ENOENT')
  )
}

async function verify({ output, paths }: CommandContext, options: Options): Promise<number> {
  if (textOption(options, 'since') !== undefined || textOption(options, 'peer') !== undefined)
    throw new NodeError('USAGE', '--verify checks every line; it takes neither --since nor --peer')
  const { brokenText, verifyAudit } = await import('../../maintenance/audit.js')
  const { audit: dir, auditSeen: seen } = paths()
  const check = await verifyAudit(dir, { seen })
  const next = check.broken.length === 0 ? [] : stepsOf(output, { dir, seen, broken: check.broken })
  if (output.json)
    output.object('audit-check@1', { ...check, brokenAt: check.broken[0]?.line ?? null, ...(check.ok ? {} : { next }) })
  else if (check.ok)
    output.print(`${output.paint('green', 'ok')}  ${plural(check.entries, 'line')}, no link of the chains is broken`)
  else {
    for (const one of check.broken) output.print(`${output.paint('red', 'broken')}  ${brokenText(one)}`)
    output.print(`${plural(check.entries, 'line')} in all chains hold`)
    for (const one of next) output.note(`  try: ${shown(one, HINT_MAX)}`)
  }
  return check.ok ? EXIT.ok : EXIT.failed
}

/** A broken chain cannot be mended, only looked at and put aside. */
function stepsOf(
  output: Output,
  { dir, seen, broken }: { readonly dir: string; readonly seen: string; readonly broken: readonly BrokenChain[] }
): string[] {
  const { file = null, fileLine = null } = broken.find((one) => one.file !== null) ?? {}
  const look = file === null ? `ls -la ${shellWord(dir)}` : `less -N +${fileLine ?? 1} ${shellWord(file)}`
  const away = `mv ${shellWord(dir)} ${shellWord(`${dir}.broken`)}; rm -f ${shellWord(seen)}`
  const anew = `${output.hint('a2a-node stop')}; ${away}; ${output.hint('a2a-node start')}`
  return [`${look}   # shows its files; compare them with a backup`, `${anew}   # begin a new log, once you know why`]
}

async function list(context: CommandContext, options: Options): Promise<number> {
  const { output, paths } = context
  const names = await namesNow(context)
  const since = sinceOption(options, 'since')
  const who = textOption(options, 'peer')
  const peer = who === undefined ? null : await peerOf(who, names, paths().audit)
  const { readAudit } = await import('../../maintenance/audit.js')
  const query = given({ since })
  let seen = 0
  let damaged = 0
  for await (const line of readAudit(paths().audit, query)) {
    if ('damaged' in line) damaged++
    else if (peer === null || nodesIn(line).includes(peer)) {
      seen++
      if (output.json) output.object('audit-line@1', jsonOf(line, names))
      else output.print(textOf(output, line, names))
    }
  }
  if (seen === 0 && !output.json) output.note('nothing is on record')
  if (damaged > 0) output.note(`${plural(damaged, 'line')} cannot be read: ${output.hint('a2a-node audit --verify')}`)
  return EXIT.ok
}

/** The names of all nodes, once a running node has written down what waits. */
async function namesNow({ api }: CommandContext): Promise<NodeNames> {
  await api()
    .call('audit.flush', {})
    .catch((error: unknown) => {
      if (!(error instanceof NodeError) || error.code !== 'NODE_NOT_RUNNING') throw error
    })
  return await nodeNames(api())
}

/** The id of a node, by the name of a member or by a prefix of an id on record. */
async function peerOf(text: string, names: NodeNames, dir: string): Promise<string> {
  const named = [...names].find(([id, name]) => name === text || id === text)
  if (named !== undefined) return named[0]
  // A key that was never a member, or any id while no node runs, stands in the log all the same.
  if (isKeyText(text)) return text
  const isPrefix = text.length >= MIN_ID_CHARACTERS && /^[a-z0-9]+$/.test(text)
  if (!isPrefix && names.size === 0)
    throw new NodeError(
      'USAGE',
      `while no node runs --peer takes an id, at least ${MIN_ID_CHARACTERS} characters of it`
    )
  const found = isPrefix ? await idsLike(text, names, dir) : []
  const [first] = found
  if (first !== undefined && found.length === 1) return first
  if (first === undefined) throw unknownPeer(text, names)
  const candidates = found.map((id) => (names.has(id) ? `${id} (${names.get(id)})` : id))
  const next = ['a2a-node audit --peer <id>']
  throw new NodeError('AMBIGUOUS_NAME', `"${shown(text)}" is the beginning of several ids`, {
    data: { candidates },
    next
  })
}

/** Ids of members and on record with that prefix, the first 20. */
async function idsLike(prefix: string, names: NodeNames, dir: string): Promise<string[]> {
  const { readAudit } = await import('../../maintenance/audit.js')
  const ids = new Set([...names.keys()].filter((id) => id.startsWith(prefix)))
  for await (const line of readAudit(dir, {})) {
    for (const id of 'damaged' in line ? [] : nodesIn(line)) if (id.startsWith(prefix)) ids.add(id)
    if (ids.size >= CANDIDATES_MAX) break
  }
  return [...ids]
}

/** The text may be a name, which only a running node can resolve. */
function unknownPeer(text: string, names: NodeNames): NodeError {
  if (names.size > 0)
    return new NodeError('PEER_NOT_FOUND', `no node "${shown(text)}" in the mesh, and no id on record begins so`)
  const message = `no id on record begins with "${shown(text)}"; names are known only while the node runs: give the id`
  return new NodeError('PEER_NOT_FOUND', message, { next: ['a2a-node audit --json', 'a2a-node start'] })
}

function nodesIn({ peer = '', by = '', sender = '', recipient = '' }: ReadLine): string[] {
  return [peer, by, nodeOf(sender), nodeOf(recipient)]
}

function nodeOf(address: string): string {
  return address.slice(address.lastIndexOf('@') + 1)
}

function refOf(id: string | undefined, names: NodeNames): NodeRef | null {
  return id === undefined ? null : { id, name: names.get(id) ?? shortId(id) }
}

/** `id@node` with the name of its node, where one is known. */
function addressOf(address: string | undefined, names: NodeNames): string | null {
  if (address === undefined) return null
  const name = names.get(nodeOf(address))
  return name === undefined ? address : `${address.slice(0, address.lastIndexOf('@'))}@${name}`
}

function jsonOf(line: ReadLine, names: NodeNames): object {
  const { chain, seq, at, kind, code, count = 1, several = [], hash } = line
  const { rule = null, reason = null, messageType = null, sourceTier = null, targetTier = null } = line
  const who = { peer: refOf(line.peer, names), by: refOf(line.by, names) }
  const ends = { sender: addressOf(line.sender, names), recipient: addressOf(line.recipient, names) }
  const hops = (line.hops?.split(' ') ?? []).map((one) => refOf(one, names))
  return {
    at,
    kind,
    code,
    count,
    several,
    rule,
    reason,
    ...who,
    ...ends,
    hops,
    messageType,
    sourceTier,
    targetTier,
    chain,
    seq,
    hash
  }
}

const STYLES: Readonly<Record<string, Style>> = {
  refusal: 'yellow',
  strike: 'red',
  membership: 'cyan',
  approval: 'green'
}

function textOf(output: Output, line: ReadLine, names: NodeNames): string {
  const { at, kind, code, count = 1 } = line
  const parts = [
    peerText(line, names) ?? severalOf(line, 'peer'),
    line.by === undefined ? null : `by ${refOf(line.by, names)?.name ?? ''}`,
    ...passageOf(line, names),
    line.rule === undefined ? severalOf(line, 'rule') : `[${line.rule}]`,
    line.reason ?? null,
    count > 1 ? `(${count} times)` : null
  ].filter((part) => part !== null)
  const columns = [
    { text: kind, width: 10, style: STYLES[kind] ?? null },
    { text: code, width: 18 }
  ]
  return logLine(output, { at, columns, text: parts.join('  ') })
}

/** The other node. For a decision of a person with its key, since names may look alike. */
function peerText({ kind, peer }: ReadLine, names: NodeNames): string | null {
  const name = refOf(peer, names)?.name ?? null
  return name === null || peer === undefined || kind !== 'approval' ? name : `${name} (${shortId(peer)})`
}

/** Whose message it was, to whom, by whom it came, its type and tiers. */
function passageOf(line: ReadLine, names: NodeNames): (string | null)[] {
  const { sourceTier, targetTier } = line
  const ends = (['sender', 'recipient'] as const).map(
    (one) => shortAddress(addressOf(line[one], names)) ?? severalOf(line, one)
  )
  const tiers = [sourceTier ?? severalOf(line, 'sourceTier'), targetTier ?? severalOf(line, 'targetTier')]
  const hops = line.hops?.split(' ').map((one) => refOf(one, names)?.name)
  const pair = (both: readonly (string | null)[], between: string): string | null =>
    both.every((one) => one === null) ? null : both.map((one) => one ?? '-').join(between)
  return [
    pair(ends, ' -> '),
    hops === undefined ? null : `via ${hops.join(', ')}`,
    line.messageType ?? severalOf(line, 'messageType'),
    pair(tiers, ' to ')
  ]
}

const SEVERAL: Readonly<Record<string, string>> = {
  peer: 'several nodes',
  sender: 'several',
  recipient: 'several',
  messageType: 'several types',
  rule: '[several rules]',
  sourceTier: 'several',
  targetTier: 'several'
}

/** The text for a field in which the events of a line differ; null where none had it. */
function severalOf({ several = [] }: ReadLine, name: string): string | null {
  return several.includes(name) ? (SEVERAL[name] ?? null) : null
}

function shortAddress(address: string | null | undefined): string | null {
  if (address === null || address === undefined) return null
  const node = nodeOf(address)
  return isKeyText(node) ? `${address.slice(0, -node.length)}${shortId(node)}` : address
}
