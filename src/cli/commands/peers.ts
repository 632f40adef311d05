import { shortId } from '../../kit/ids.js'
import { NodeError } from '../../kit/errors.js'
import { refuseName } from '../../kit/names/refuse-name.js'
import { NODE_NAME } from '../../kit/names/rule.js'
import { TRUST_WORDS } from '../../kit/names/trust.js'
import { shellWord, shown } from '../../kit/text.js'
import type { Calls, Problem } from '../../ports/node-api.js'
import type { PeerDetail, PeerInfo, PeerList } from '../../ports/peer-api.js'
import type { Action } from '../context.js'
import { EXIT } from '../exit-codes.js'
import { emptyText, hinted, hintedAll, noteProblems, problemLines } from '../terminal/banner.js'
import { noteOwnWriters } from '../documents/facts.js'
import { showWatch } from '../terminal/live.js'
import { isSet, textOption, tierArgument } from '../options.js'
import type { Output } from '../terminal/output.js'
import { type Cell, plural, printFacts, tableLines } from '../terminal/render.js'
import { agoText, bytesText, rttText, timeText } from '../words.js'

/** `peers`: the table of the other nodes; with `--watch` again at each change. */
export const peers: Action = async (context, _args, options) => {
  const { output } = context
  const params = isSet(options, 'all') ? { all: true } : {}
  if (isSet(options, 'watch')) {
    const watch = context.api().watch('peers.list', params)
    return await showWatch(output, watch, {
      schema: 'peers@1',
      lines: (item) => watchLines(output, item),
      json: (item) => hintedList(output, item)
    })
  }
  const result = await context.api().call('peers.list', params)
  if (output.json) output.object('peers@1', hintedList(output, result))
  else for (const line of await peerLines(output, result)) output.print(line)
  noteProblems(output, [...result.problems, ...problemsOf(result.peers)])
  if (!output.json && result.peers.length + result.problems.length === 0)
    output.note(`Invite another machine: ${output.hint('a2a-node invite')}`)
  return EXIT.ok
}

function hintedList(output: Output, { peers: list, problems }: PeerList): PeerList {
  return { peers: list.map((peer) => hintedPeer(output, peer)), problems: hintedAll(output, problems) }
}

async function watchLines(output: Output, result: PeerList): Promise<string[]> {
  return [...(await peerLines(output, result)), ...problemLines(output, result.problems)]
}

async function peerLines(output: Output, { peers: list, problems }: PeerList): Promise<string[]> {
  if (list.length === 0) return [problems.length === 0 ? 'no peers yet' : emptyText('peers', problems)]
  const rows = list.map((peer): Cell[] => [
    { text: shown(peer.name), style: 'bold' },
    shortId(peer.id),
    peer.tier,
    peer.trust,
    statusCell(peer),
    peer.path ?? '-',
    rttText(peer.rttMs),
    peer.agents.join(', ')
  ])
  return await tableLines(output, ['NAME', 'ID', 'TIER', 'TRUST', 'STATUS', 'PATH', 'RTT', 'AGENTS'], rows)
}

function statusCell({ status, problem }: PeerInfo): Cell {
  return problem === null
    ? { text: status, style: styleOf(status) }
    : { text: `${status}, in quarantine`, style: 'red' }
}

function hintedPeer<P extends PeerInfo>(output: Output, peer: P): P {
  return peer.problem === null ? peer : { ...peer, problem: hinted(output, peer.problem) }
}

function problemsOf(list: readonly PeerInfo[]): Problem[] {
  return list.flatMap((peer) => peer.problem ?? [])
}

/** `peers show <peer>`. */
export const showPeer: Action = async (context, [peer = '']) => {
  const detail = await context.api().call('peers.show', { peer })
  if (context.output.json) context.output.object('peer@1', hintedPeer(context.output, detail))
  else printPeer(context.output, detail)
  return EXIT.ok
}

function printPeer(output: Output, peer: PeerDetail): void {
  output.print(
    `${output.paint('bold', shown(peer.name))}   ${peer.tier}   ${output.paint(styleOf(peer.status), peer.self ? 'this node' : peer.status)}`
  )
  const roles = [
    peer.owner ? 'owner' : null,
    peer.admin ? 'admin' : null,
    peer.writer ? 'writer of the log' : null
  ].filter((one) => one !== null)
  printFacts(output, [
    ['id', peer.id],
    ['role', roles.length === 0 ? 'member' : roles.join(', ')],
    peer.self ? null : ['trust', `${peer.trust}: ${TRUST_WORDS[peer.trust]}`],
    peer.self ? null : ['path', peer.path === null ? '-' : `${peer.path}, ${rttText(peer.rttMs)}`],
    ...(peer.addresses ?? []).map(addressFact),
    ['agents', peer.agents.join(', ')],
    ['admitted', `by ${peer.issuer.name} (${shortId(peer.issuer.id)})`],
    peer.sandboxId === null ? null : ['sandbox', peer.sandboxId],
    peer.version === null ? null : ['version', peer.version],
    peer.self ? null : ['last seen', peer.status === 'online' ? 'now' : agoText(peer.lastSeenAt, Date.now())],
    documentsFact(peer),
    peer.revoked === null
      ? null
      : [
          'revoked',
          {
            text: `by ${peer.revoked.by.name}, ${timeText(peer.revoked.at)}: ${peer.revoked.reason || 'no reason given'}`,
            style: 'red'
          }
        ]
  ])
  for (const line of problemLines(output, problemsOf([peer]))) output.print(line)
}

/** An address of `peers add`, with the fault of its last dial. */
export function addressFact({ address, fault }: NonNullable<PeerDetail['addresses']>[number]): [string, Cell] {
  return ['address', fault === null ? address : { text: `${address}: ${shown(fault, 200)}`, style: 'yellow' }]
}

/** Storage that it takes here for documents, and the refused rest; null: none. */
function documentsFact({ documents: { bytes, snapshotBytes, maxBytes, leftOut } }: PeerDetail): [string, Cell] | null {
  if (bytes + snapshotBytes + leftOut === 0) return null
  const kept = `${bytesText(bytes + snapshotBytes)} stored for documents unused here, limit ${bytesText(maxBytes)}`
  return ['documents', leftOut === 0 ? kept : { text: `${kept}; ${plural(leftOut, 'stream')} left out`, style: 'red' }]
}

function styleOf(status: PeerInfo['status']): 'green' | 'red' | 'dim' {
  return status === 'online' ? 'green' : status === 'revoked' ? 'red' : 'dim'
}

/** `peers rename <peer> <name>`. */
export const renamePeer: Action = async (context, [peer = '', name = '']) => {
  const detail = await context.api().call('peers.rename', { peer, name: nameArgument(name) })
  const { output } = context
  printChanged(output, detail, `${shown(peer)} is now called ${shown(detail.name)}`)
  if (!output.json)
    for (const one of detail.policy) output.note(`${output.paintNote('yellow', 'warning')}  ${ruleText(one)}`)
  return EXIT.ok
}

function ruleText({ file, line, name, means }: Calls['peers.rename']['result']['policy'][number]): string {
  const now = means === null ? 'no node now: the rule no longer matches it' : `${shown(means)} now, another node`
  return `${shown(file, 1000)}:${line}: "${shown(name, 64)}" means ${now}`
}

/** `peers tier <peer> <L>`. */
export const tierPeer: Action = async (context, [peer = '', level = '']) => {
  const detail = await context.api().call('peers.tier', { peer, tier: tierArgument(level) })
  return printChanged(context.output, detail, `${shown(detail.name)} is ${detail.tier} now`)
}

/** `peers trust <peer> mine|guest`. */
export const trustPeer: Action = async ({ api, output }, [peer = '', trust = '']) => {
  if (trust !== 'mine' && trust !== 'guest')
    throw new NodeError('USAGE', `a peer is mine or a guest; ${JSON.stringify(shown(trust, 64))} is neither`, {
      next: [`a2a-node peers trust ${shellWord(peer)} guest`]
    })
  const detail = await api().call('peers.trust', { peer, trust })
  const name = shown(detail.name)
  // A rating of another own machine counts as well.
  const isOverruled = detail.trust !== trust
  const state = detail.changed ? `${name} is ${WORDS[trust]} now` : `${name} was ${WORDS[trust]} before`
  const other = `${name} stays ${WORDS[detail.trust]}: another machine of yours calls it a guest; run the command there too`
  const code = printChanged(output, detail, isOverruled ? other : state)
  if (!output.json && detail.changed && !isOverruled) {
    const { documents } = await api().call('documents.list', {})
    noteOwnWriters(output, documents, `access stays as it was for ${name}; to give it to your machines alone`)
  }
  return code
}

const WORDS: Readonly<Record<PeerInfo['trust'], string>> = { mine: 'yours', guest: 'a guest' }

/** `peers add <peer> --address <host:port>`. */
export const addAddress: Action = (context, [peer = ''], options) => changeAddress(context, peer, { options })

/** `peers remove <peer> --address <host:port>`. */
export const removeAddress: Action = (context, [peer = ''], options) =>
  changeAddress(context, peer, { options, remove: true })

async function changeAddress(
  { api, output }: Parameters<Action>[0],
  peer: string,
  { options, remove = false }: { readonly options: Parameters<Action>[2]; readonly remove?: boolean }
): Promise<number> {
  const address = textOption(options, 'address')
  if (address === undefined)
    throw new NodeError('USAGE', `--address is missing: host:port${remove ? ' of peers add' : ''}`, {
      next: [
        remove
          ? `a2a-node peers show ${shellWord(peer)}`
          : `a2a-node peers add ${shellWord(peer)} --address 10.0.0.5:7422`
      ]
    })
  const detail = await api().call('peers.address', { peer, address, remove })
  const name = shown(detail.name)
  const state = remove
    ? `${name} is not dialled at ${shown(address)} any more`
    : `${name} is dialled at ${shown(address)} too`
  return printChanged(
    output,
    detail,
    detail.changed ? state : `${shown(address)} was ${remove ? 'no' : 'an'} address of ${name} before`
  )
}

/** `peers revoke <peer>`. */
export const revokePeer: Action = async (context, [peer = ''], options) => {
  const reason = textOption(options, 'reason')
  const detail = await context.api().call('peers.revoke', reason === undefined ? { peer } : { peer, reason })
  const who = `${shown(detail.name)} (${shortId(detail.id)})`
  const { revoked } = detail
  if (!detail.wasRevoked || revoked === null)
    return printChanged(context.output, detail, `${who} is out of the mesh for good`)
  const before = `by ${shown(revoked.by.name)}, ${timeText(revoked.at)}: ${shown(revoked.reason) || 'no reason given'}`
  return printChanged(context.output, detail, `${who} was out of the mesh before, ${before}; nothing was changed`)
}

function printChanged(output: Output, detail: PeerDetail, text: string): number {
  if (output.json) output.object('peer@1', detail)
  else output.print(text)
  return EXIT.ok
}

/** The name of a node. @throws NodeError USAGE */
function nameArgument(text: string): string {
  refuseName(text, NODE_NAME, { code: 'USAGE', label: '<name>' })
  return text
}
