import { MAX_SKEW_MS } from '../../../kit/clock.js'
import { shortId } from '../../../kit/ids.js'
import { shown } from '../../../kit/text.js'
import { formatDuration } from '../../../kit/units.js'
import type { DialEnd } from '../../../ports/network/reach.js'
import type { PeerExam } from '../../../ports/peer-api.js'
import type { CommandContext } from '../../context.js'
import { EXIT } from '../../exit-codes.js'
import type { Style } from '../../terminal/output.js'
import { factLines, foldedLines } from '../../terminal/render.js'
import { rttText } from '../../words.js'
import { addressFact } from '../peers.js'

const FAULTS: Readonly<Record<NonNullable<DialEnd['fault']>, string>> = {
  'not-found': 'the last dial did not find its key',
  silent: 'announced, and does not answer',
  'not-punched': 'found, and no packet passes directly',
  failed: 'the dial failed'
}

/** `doctor <peer>`: the ways to a peer, with a verdict; exit code 1 when it is not reached. */
export async function doctorPeer({ output, api }: CommandContext, peer: string): Promise<number> {
  const exam = await api().call('peers.examine', { peer })
  const { verdict } = exam
  const next = output.hint(verdict.next)
  if (output.json) output.object('doctor-peer@1', { ...exam, verdict: { ...verdict, next } })
  else {
    output.print(`${output.paint('bold', shown(exam.name))} (${shortId(exam.id)})`)
    for (const line of factLines(output, factsOf(exam))) output.print(line)
    const word = verdict.ok ? 'ok:' : 'fault:'
    const head = `${output.paint(verdict.ok ? 'green' : 'red', word)} `
    for (const line of foldedLines(output, shown(verdict.text, 1000), { head, column: word.length + 1 }))
      output.print(line)
    output.print(`  try: ${shown(next, 500)}`)
  }
  return verdict.ok ? EXIT.ok : EXIT.failed
}

type Fact = readonly [string, string | { readonly text: string; readonly style: Style }]

function factsOf(exam: PeerExam): Fact[] {
  const { revoked, sight, reach, policy, version, ownVersion, lastSeenAt } = exam
  const rights = [exam.owner ? 'owner' : exam.admin ? 'admin' : 'member', exam.tier, exam.trust]
  const agents = (['allow', 'ask', 'deny'] as const).flatMap((one) =>
    policy[one].length === 0 ? [] : [`${one} ${policy[one].join(', ')}`]
  )
  return [
    ['identity', revoked === null ? rights.join(', ') : { text: `revoked at ${revoked.at}`, style: 'red' }],
    ['key', exam.id],
    ...(sight === null
      ? []
      : ([
          ['dht', announced(sight.isAnnounced)],
          ['nat', natText(exam)]
        ] as const)),
    ['path', pathText(exam)],
    ...(sight === null || sight.udp === null ? [] : [['udp', udpText(sight.udp)] as const]),
    ...(exam.addresses ?? []).map(addressFact),
    ...(sight?.webSockets ?? []).map(({ url, fault }) => ['websocket', `${url}: ${fault ?? 'answers'}`] as const),
    ['clock', clockFact(sight?.clockAheadMs ?? null)],
    ['version', `${version ?? 'not known'} there, ${ownVersion} here`],
    ...(revoked === null
      ? [['policy', agents.length === 0 ? 'no agent here' : `its requests here: ${agents.join('; ')}`] as const]
      : []),
    ['seen', lastSeenAt ?? 'never'],
    ...(reach?.dht?.state === 'silent'
      ? [['here', { text: 'no node of the DHT answers', style: 'yellow' as const }] as const]
      : [])
  ]
}

function announced(isAnnounced: boolean | null): string {
  if (isAnnounced === null) return 'not asked: no node of it answers'
  return isAnnounced ? 'its key is announced' : 'its key is announced nowhere'
}

function natText({ reach, sight }: PeerExam): string {
  return `${reach?.nat.kind ?? 'unknown'} here, ${sight?.udp?.nats?.there ?? 'unknown'} there`
}

function pathText({ path, rttMs, relayedBy }: PeerExam): string {
  if (relayedBy !== null) return `relayed by ${relayedBy.name}`
  return path === null ? 'none' : `${path}, ${rttText(rttMs)}`
}

function udpText({ fault }: DialEnd): string {
  return fault === null ? 'the last dial opened a stream' : FAULTS[fault]
}

function clockFact(aheadMs: number | null): Fact[1] {
  if (aheadMs === null) return 'not compared: there is no link'
  if (Math.abs(aheadMs) < 1000) return 'agrees with this one'
  const text = `${formatDuration(Math.round(Math.abs(aheadMs) / 1000) * 1000)} ${aheadMs > 0 ? 'behind' : 'ahead of'} this one`
  return Math.abs(aheadMs) > MAX_SKEW_MS ? { text, style: 'yellow' } : text
}
