import fs from 'node:fs'
import path from 'node:path'
import { Ajv } from 'ajv'
import YAML from 'yaml'
import { isRecord } from '../../../src/kit/json.js'
import { DATA } from './cases.js'

/** Decides whether a value is as one key of a matcher wants it; null: it is. */
type Rule = (value: unknown, wanted: never) => string | null

let schemas: Ajv | undefined

/** Schemas of the data model. */
function ajv(): Ajv {
  schemas ??= new Ajv({ strict: false, allErrors: true }).addSchema(
    YAML.parse(fs.readFileSync(path.join(DATA, 'shapes.yml'), 'utf8')) as object,
    'shapes'
  )
  return schemas
}

const kindOf = (value: unknown): string => (value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value)
const short = (value: unknown): string => (JSON.stringify(value) ?? 'absent').slice(0, 300)
const sizeOf = (value: unknown): number => (Array.isArray(value) ? value.length : -1)
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

/** What a matcher may say of a value. A matcher without such a key is equal to its value. */
const RULES: Readonly<Record<string, Rule>> = {
  is: (value, kind: string) => (kindOf(value) === kind ? null : `is no ${kind}`),
  absent: (value) => (value === undefined ? null : 'is there'),
  oneOf: (value, all: readonly unknown[]) => (all.includes(value) ? null : `is none of ${short(all)}`),
  like: (value, pattern: string) =>
    typeof value === 'string' && new RegExp(pattern).test(value) ? null : `is not like ${pattern}`,
  least: (value, count: number) => (sizeOf(value) >= count ? null : `has fewer than ${count} items`),
  most: (value, count: number) =>
    sizeOf(value) >= 0 && sizeOf(value) <= count ? null : `has more than ${count} items, or is no list`,
  some: (value, each: Readonly<Record<string, unknown>>) =>
    listOf(value).some((one) => faultsOf(one, each).length === 0) ? null : `has no item like ${short(each)}`,
  every: (value, each: Readonly<Record<string, unknown>>) => {
    const [fault] = listOf(value).flatMap((one, at) => faultsOf(one, each).map((text) => `item ${at}: ${text}`))
    return Array.isArray(value) ? (fault ?? null) : 'is no list'
  },
  any: (value, matchers: readonly unknown[]) =>
    matchers.some((one) => faultOf(value, one) === null) ? null : `is not as any of ${short(matchers)}`,
  holds: (value, texts: string | readonly string[]) => {
    const json = JSON.stringify(value) ?? ''
    const lacking = [texts].flat().find((text) => !json.includes(text))
    return lacking === undefined ? null : `does not hold ${short(lacking)}`
  },
  inOrder: (value, texts: readonly string[]) => {
    const found = listOf(value).filter((one) => texts.includes(String(one)))
    return short(found) === short(texts) ? null : `has ${short(found)}, not ${short(texts)}`
  },
  names: (value, pattern: string) => {
    const wrong = namesIn(value).find((name) => !new RegExp(pattern).test(name))
    return wrong === undefined ? null : `has a member ${short(wrong)}`
  },
  shape: (value, name: string) => {
    const validate = ajv().compile({ $ref: `shapes#/$defs/${name}` })
    return validate(value) ? null : `is no ${name}: ${ajv().errorsText(validate.errors).slice(0, 300)}`
  }
}

/** Names of members at any depth; free JSON (data, metadata, parameters) is not looked into. */
function namesIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(namesIn)
  if (!isRecord(value)) return []
  return Object.entries(value).flatMap(([name, one]) =>
    ['data', 'metadata', 'params'].includes(name) ? [name] : [name, ...namesIn(one)]
  )
}

/** Does a matcher speak of a value, and is not its like? */
function isMatcher(wanted: unknown): wanted is Readonly<Record<string, unknown>> {
  return isRecord(wanted) && Object.keys(wanted).length > 0 && Object.keys(wanted).every((name) => name in RULES)
}

/** How a value differs from a matcher; null: it does not. @throws for a matcher with an unknown rule */
export function faultOf(value: unknown, wanted: unknown): string | null {
  if (!isMatcher(wanted)) {
    if (isRecord(wanted)) throw new Error(`no such rule: ${Object.keys(wanted).join(', ')}`)
    return short(value) === short(wanted) ? null : `is not ${short(wanted)}`
  }
  for (const [name, given] of Object.entries(wanted)) {
    const fault = RULES[name]?.(value, given as never) ?? null
    if (fault !== null) return fault
  }
  return null
}

/** Values at a path: `a.b[0].c`; `[*]` is every item. A path without `[*]` has one value, which may be undefined. */
export function valuesAt(value: unknown, place: string): unknown[] {
  const steps = place.match(/\[[^\]]*\]|[^.[\]]+/g) ?? []
  return steps.reduce<unknown[]>(
    (values, step) =>
      step === '[*]'
        ? values.flatMap((one) => listOf(one))
        : values.map((one) => (one as Record<string, unknown> | null | undefined)?.[step.replace(/^\[|\]$/g, '')]),
    [value]
  )
}

const INNER_LISTS = ['inOrder']

/** All differences of a value from its matchers by path. Where a path has several values, one of them must fit. */
export function faultsOf(value: unknown, wanted: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(wanted).flatMap(([place, matcher]) => {
    const values = valuesAt(value, place)
    const isWhole = isRecord(matcher) && INNER_LISTS.some((name) => name in matcher)
    const faults = (isWhole ? [values] : values).map((one) => [one, faultOf(one, matcher)] as const)
    if (faults.some(([, fault]) => fault === null)) return []
    const [one, fault] = faults[0] ?? [undefined, 'has no value']
    return [`${place === '' ? 'the answer' : place} ${fault}; it is ${short(one)}`]
  })
}
