import { createHash } from 'node:crypto'
import { canonicalJson, isRecord } from '../../../kit/json.js'
import { shown, SHOWN_MAX } from '../../../kit/text.js'
import type { AuditEvent } from '../../../ports/audit.js'

/** `prev` of the very first line. */
export const GENESIS = '0'.repeat(64)

/** `prev` of the first line after a missing or unreadable head: a hash that no line has. */
export const UNPROVEN = 'f'.repeat(64)

/** Where a chain stands: the number and hash of its last line; seq 0 and {@link GENESIS} before the first. */
export interface ChainHead {
  readonly seq: number
  readonly hash: string
}

/** An audit event with its time and number of repeats. */
export interface AuditEntry extends AuditEvent {
  /** ISO time; of the first one, where `count` is given. */
  readonly at: string
  /**
   * Names of the members that are left out because the events of this line differ in them; absent when it lost none.
   */
  readonly several?: readonly string[]
  /** How many equal events this line stands for; absent for one. */
  readonly count?: number
}

/**
 * One line of the file. `hash` is the SHA-256 (hex) of the canonical JSON of all its other members, `prev` the hash of
 * the line before.
 */
export interface AuditLine extends AuditEntry {
  readonly seq: number
  readonly prev: string
  readonly hash: string
}

const KINDS: readonly string[] = ['refusal', 'membership', 'approval', 'cross-tier', 'control', 'strike']
const TEXTS = [
  'code',
  'rule',
  'reason',
  'peer',
  'by',
  'sender',
  'recipient',
  'messageType',
  'sourceTier',
  'targetTier',
  'hops',
  'ref'
] as const
/** Room for the keys of all hops. */
const MAX_HOPS_TEXT = 512

/** An event as it is kept: known members only, texts of others made safe to show. */
export function keptEvent(event: AuditEvent): AuditEvent {
  const kept: Record<string, string> = { kind: event.kind }
  for (const name of TEXTS) {
    const text = event[name]
    if (text !== undefined) kept[name] = shown(text, name === 'hops' ? MAX_HOPS_TEXT : SHOWN_MAX)
  }
  return { ...(kept as { code: string }), kind: event.kind }
}

/** The next line of a chain. */
export function nextLine(entry: AuditEntry, head: ChainHead): AuditLine {
  const { at, ...event } = entry
  const body = { seq: head.seq + 1, at, ...event, prev: head.hash }
  return { ...body, hash: hashOf(body) }
}

/** The text of a line in the file, without its newline. There is exactly one text for a line. */
export function lineText({ seq, at, kind, several, count, prev, hash, ...rest }: AuditLine): string {
  const texts = TEXTS.map((name) => [name, rest[name]] as const)
  return JSON.stringify({ seq, at, kind, ...Object.fromEntries(texts), several, count, prev, hash })
}

/** Reads a line back; null when it is not exactly what {@link lineText} makes of some line whose hash is right. */
export function parseLine(text: string): AuditLine | null {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return null
  }
  if (!isLine(value) || lineText(value) !== text) return null
  const { hash, ...body } = value
  return hashOf(body) === hash ? value : null
}

function isLine(value: unknown): value is AuditLine {
  if (!isRecord(value) || !Number.isSafeInteger(value['seq']) || !KINDS.includes(String(value['kind']))) return false
  const texts = ['at', 'code', 'prev', 'hash'].every((name) => typeof value[name] === 'string')
  const { several } = value
  if (several !== undefined && !(Array.isArray(several) && several.every((name) => typeof name === 'string')))
    return false
  return texts && (value['count'] === undefined || Number.isSafeInteger(value['count']))
}

function hashOf(body: Omit<AuditLine, 'hash'>): string {
  return createHash('sha256').update(canonicalJson(body)).digest('hex')
}
