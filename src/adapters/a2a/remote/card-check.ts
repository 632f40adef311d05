import type { z } from 'zod'
import { isRecord, JSON_LIMITS, jsonFault } from '../../../kit/json.js'
import { A2A_NULLS, withoutNulls } from '../../../kit/schema/nulls.js'
import { shown } from '../../../kit/text.js'
import { jsonReason } from '../../../domain/schema-words.js'
import { type BrokenRule, brokenRules, quoted } from './card-rules.js'
import { cardV03Schema, cardV1Schema, stopsImport } from './card-schema.js'
import { versionRead, versionsOf, type WrittenCard } from './remote-interfaces.js'

/** Most findings about one card. */
export const CARD_MAX_FINDINGS = 256
/** Most values in one card, at any depth: each may be a finding. */
export const CARD_MAX_VALUES = 20_000
/** Most members that a warning names. */
const NAMED_NULLS = 8

/** A fault of a card, or a warning about it. */
export interface CardFinding {
  /** JSON pointer into the card; '' is the card. */
  readonly path: string
  /** The present value, e.g. `is 7`. */
  readonly wrong: string
  /** The expected value, e.g. `must be a text`. */
  readonly right: string
  /** A warning: the card is used as if it were right. */
  readonly isWarning: boolean
  /** An import refuses the card for it. Never of a warning. */
  readonly stopsImport: boolean
}

/** Report of {@link checkCard}. */
export interface CardReport {
  /** By path; at most {@link CARD_MAX_FINDINGS}, those that stop an import before others. */
  readonly findings: readonly CardFinding[]
  /** The versions of which the card has members: it must be right in each. */
  readonly versions: readonly ('1.0' | '0.3')[]
  /** The card without its null members; null: it is no JSON object within the bounds. */
  readonly card: WrittenCard | null
}

/**
 * Checks a card that others wrote by the A2A specification and the limits of this node. These are the only rules for
 * such cards: `agents check` reports all findings, and an import refuses the card for each that `stopsImport`. A card
 * of both versions is checked as both; one of neither as 1.0. `from`: its URL. Never throws.
 */
export function checkCard(written: unknown, from: string | null = null): CardReport {
  try {
    return checked(written, from)
  } catch {
    return { findings: [fatal('cannot be read', 'must be a JSON object')], versions: [], card: null }
  }
}

/** A fault of the whole card, for which an import refuses it. */
export function fatal(wrong: string, right: string): CardFinding {
  return { path: '', wrong: shown(wrong, 1000), right, isWarning: false, stopsImport: true }
}

/** One line about a finding. */
export function findingText({ path, wrong, right }: Pick<CardFinding, 'path' | 'wrong' | 'right'>): string {
  return `${path === '' ? 'the card' : path} ${wrong}; ${right}`
}

function checked(written: unknown, from: string | null): CardReport {
  if (!isRecord(written))
    return {
      findings: [fatal('is no JSON object', 'must be an object with name, skills and interfaces')],
      versions: [],
      card: null
    }
  const bound = jsonFault(written, JSON_LIMITS) ?? countFault(written)
  if (bound !== null)
    return {
      findings: [fatal(`is not read: ${bound}`, 'must keep to the limits of JSON here')],
      versions: [],
      card: null
    }
  const card = withoutNulls(written, A2A_NULLS) as WrittenCard
  const versions = versionsOf(card)
  const all = versions.flatMap((version) => findingsOf(card, version, from))
  return { findings: inOrder(firstOf([...all, ...nullWarning(written, card)])), versions, card }
}

function findingsOf(card: WrittenCard, version: '1.0' | '0.3', from: string | null): readonly CardFinding[] {
  const { error } = (version === '1.0' ? cardV1Schema : cardV03Schema).safeParse(card, { error: jsonReason })
  // The faults of the version that is not read stop nothing.
  const isRead = version === versionRead(card)
  const ofShape = (error?.issues ?? []).map((issue) => shapeFinding(card, issue, isRead))
  return [...ofShape, ...brokenRules(card, version, from).map((rule) => ruleFinding(rule, isRead))]
}

function shapeFinding(card: unknown, issue: z.core.$ZodIssue, isRead: boolean): CardFinding {
  const value = valueAt(card, issue.path)
  const wrong =
    issue.code === 'too_big'
      ? sized(value)
      : issue.code === 'invalid_key'
        ? 'has a name that is too long'
        : described(value)
  const isFatal = isRead && stopsImport(issue, value === undefined)
  return { path: pointer(issue.path), wrong, right: shown(issue.message), isWarning: false, stopsImport: isFatal }
}

function ruleFinding({ path, wrong, right, isOddity, stopsImport: stops }: BrokenRule, isRead: boolean): CardFinding {
  return { path: pointer(path), wrong, right, isWarning: isOddity === true, stopsImport: isRead && stops === true }
}

/** As many as are reported: no number of other findings hides one that stops an import. */
function firstOf(findings: readonly CardFinding[]): readonly CardFinding[] {
  const isFirst = (one: CardFinding): boolean => one.stopsImport
  return [...findings.filter(isFirst), ...findings.filter((one) => !isFirst(one))].slice(0, CARD_MAX_FINDINGS)
}

/** By path; a finding of both versions counts once, and a fault of a place goes before a warning about it. */
function inOrder(findings: readonly CardFinding[]): readonly CardFinding[] {
  const { compare } = new Intl.Collator('en', { numeric: true })
  const unique = new Map<string, CardFinding>()
  for (const one of findings) {
    const key = JSON.stringify([one.path, one.isWarning, one.right])
    if (unique.get(key)?.stopsImport !== true) unique.set(key, one)
  }
  const faulty = new Set(findings.flatMap(({ path, isWarning }) => (isWarning ? [] : [path])))
  return [...unique.values()]
    .filter((one) => !one.isWarning || !faulty.has(one.path))
    .sort((a, b) => compare(a.path, b.path))
}

function nullWarning(written: object, card: object): readonly CardFinding[] {
  const paths = nullPaths(written, card, '')
  if (paths.length === 0) return []
  const more = paths.length > NAMED_NULLS ? ` and ${paths.length - NAMED_NULLS} more` : ''
  const wrong = `has null for absent members: ${paths.slice(0, NAMED_NULLS).join(', ')}${more}`
  return [
    {
      path: '',
      wrong: shown(wrong, 1000),
      right: 'absent members should be left out',
      isWarning: true,
      stopsImport: false
    }
  ]
}

/** The members that `withoutNulls` left out. */
function nullPaths(before: object, after: object, at: string): readonly string[] {
  if (before === after) return []
  return Object.entries(before).flatMap(([key, value]: [string, unknown]) => {
    const path = at + pointer([key])
    if (!Object.hasOwn(after, key)) return [path]
    const kept = (after as Readonly<Record<string, unknown>>)[key]
    return typeof value === 'object' && value !== null && typeof kept === 'object' && kept !== null
      ? nullPaths(value, kept, path)
      : []
  })
}

function countFault(card: object): string | null {
  const stack: object[] = [card]
  let count = 0
  for (let top = stack.pop(); top !== undefined; top = stack.pop()) {
    const items: readonly unknown[] = Object.values(top)
    count += items.length
    if (count > CARD_MAX_VALUES) return `it has more than ${CARD_MAX_VALUES} values`
    for (const item of items) if (typeof item === 'object' && item !== null) stack.push(item)
  }
  return null
}

function pointer(path: readonly PropertyKey[]): string {
  return shown(path.map((key) => `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`).join(''))
}

function valueAt(card: unknown, path: readonly PropertyKey[]): unknown {
  let at: unknown = card
  for (const key of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return undefined
    at = (at as Readonly<Record<PropertyKey, unknown>>)[key]
  }
  return at
}

function described(value: unknown): string {
  if (value === undefined) return 'is missing'
  if (typeof value === 'string') return value.trim() === '' ? 'is empty' : `is ${quoted(value)}`
  if (Array.isArray(value)) return value.length === 0 ? 'is an empty list' : 'is a list'
  return typeof value === 'number' || typeof value === 'boolean'
    ? `is ${value}`
    : value === null
      ? 'is null'
      : 'is an object'
}

function sized(value: unknown): string {
  if (typeof value === 'string') return `has ${value.length} characters`
  return Array.isArray(value) ? `has ${value.length} entries` : described(value)
}
