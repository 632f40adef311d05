import { isRecord, parseJson } from '../../../kit/json.js'
import { shown } from '../../../kit/text.js'
import { type CardFinding, checkCard, fatal } from './card-check.js'
import { cardWithAddress, reachableCard, readRemoteCard } from './remote-card.js'
import { checkPlace, checkSignature, fetchCardText, type RemoteNet, type RemotePlace } from './remote-connect.js'
import { remoteFaultOf } from './remote-fault.js'
import { callableInterfaces, preferred, versionRead, type WrittenCard } from './remote-interfaces.js'

/** Report of `agents check` on the card of an A2A agent. */
export interface RemoteCardReport {
  /** It has no fault. */
  readonly ok: boolean
  /** An import takes it: it has no fault that stops an import. */
  readonly isImportable: boolean
  /** Name on the card; null without one. */
  readonly name: string | null
  /** Number of skills on the card. */
  readonly skills: number
  /** The A2A versions of which it has members. */
  readonly versions: readonly ('1.0' | '0.3')[]
  readonly faults: readonly Omit<CardFinding, 'isWarning'>[]
  readonly warnings: readonly Omit<CardFinding, 'isWarning' | 'stopsImport'>[]
}

/** Fetches a card with the limits and the address guard of imports, and reports all of its faults. Never rejects. */
export async function checkRemoteCard(
  net: RemoteNet,
  place: RemotePlace,
  signal: AbortSignal
): Promise<RemoteCardReport> {
  try {
    const { text, url } = await fetchCardText(net, place, signal)
    return await checkText(text, {
      url,
      key: place.key,
      address: place.url ?? null,
      judge: (card) => judgePlace(net, place, { card, url })
    })
  } catch (error) {
    return unread(
      `cannot be fetched: ${remoteFaultOf(error).message}`,
      'must answer with HTTP 200 and the JSON of a card'
    )
  }
}

/** Reports all faults of the text of a card. `url`: where it was; null for a file. Never rejects. */
export async function checkCardText(text: string): Promise<RemoteCardReport> {
  return await checkText(text, { url: null, key: null, address: null, judge: () => null })
}

/** The report on a card that could not be read. */
export function unread(wrong: string, right: string): RemoteCardReport {
  return reportOf([fatal(wrong, right)], { written: null, versions: [] })
}

interface CardOrigin {
  readonly url: string | null
  readonly key: RemotePlace['key']
  /** The address that the config names; null for none. */
  readonly address: string | null
  /** The fault of the address to which a usable card leads; null for none. */
  readonly judge: (card: WrittenCard) => CardFinding | null
}

async function checkText(text: string, { url, key, address, judge }: CardOrigin): Promise<RemoteCardReport> {
  const parsed = parseJson(text.replace(/^\ufeff/, ''))
  if (!parsed.ok)
    return unread(`is not to be read: ${parsed.reason}`, 'must be a JSON object within the limits of this node')
  const written = parsed.value
  const { findings, versions, card } = checkCard(cardWithAddress(written, address), url)
  const led = card === null ? null : judge(card)
  // The address that is called stops an import, whatever its form is.
  const others = findings.filter((one) => led === null || one.path !== led.path)
  return reportOf([...others, ...(led === null ? [] : [led]), ...(await judgeSignature(written, key))], {
    written,
    versions
  })
}

/** The fault of the interface that would be called. */
function judgePlace(
  net: RemoteNet,
  place: RemotePlace,
  { card, url }: { readonly card: WrittenCard; readonly url: string }
): CardFinding | null {
  const read = readRemoteCard(card)
  if (!read.ok) return null
  try {
    checkPlace(net, place, reachableCard(read.card, url))
    return null
  } catch (error) {
    const chosen = preferred(callableInterfaces(card, versionRead(card)), ({ used }) => used.version)
    const path = [...(chosen?.at.path ?? []), 'url'].map((step) => `/${step}`).join('')
    const found = fatal(`is refused: ${remoteFaultOf(error).message}`, 'must be an address that this node may call')
    return { ...found, path }
  }
}

async function judgeSignature(written: unknown, key: RemotePlace['key']): Promise<readonly CardFinding[]> {
  try {
    await checkSignature(written, key)
    return []
  } catch (error) {
    return [
      { ...fatal(`do not fit: ${remoteFaultOf(error).message}`, 'must be made of this card'), path: '/signatures' }
    ]
  }
}

function reportOf(
  findings: readonly CardFinding[],
  { written, versions }: { readonly written: unknown; readonly versions: RemoteCardReport['versions'] }
): RemoteCardReport {
  const { name, skills } = isRecord(written) ? written : { name: null, skills: [] }
  const faults = findings.filter(({ isWarning }) => !isWarning)
  return {
    ok: faults.length === 0,
    isImportable: !faults.some(({ stopsImport }) => stopsImport),
    name: typeof name === 'string' ? shown(name, 128) : null,
    skills: Array.isArray(skills) ? skills.length : 0,
    versions,
    faults: faults.map(({ path, wrong, right, stopsImport }) => ({ path, wrong, right, stopsImport })),
    warnings: findings.filter(({ isWarning }) => isWarning).map(({ path, wrong, right }) => ({ path, wrong, right }))
  }
}
