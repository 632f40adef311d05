import fs from 'node:fs'
import path from 'node:path'
import YAML from 'yaml'
import { z } from 'zod'
import { DATA } from './cases.js'
import type { Verdict } from './run-case.js'

/** One result: of a case by a binding, or of a check by a client, at a place. */
export interface CaseResult extends Verdict {
  /** Id of the case, or name of the check. */
  readonly id: string
  /** Level of the case, or `client`. */
  readonly level: string
  /** Binding or client. */
  readonly way: string
  readonly place: string
}

const expectedSchema = z.array(
  z.strictObject({
    id: z.string().min(1),
    /** Binding or client; default: all. */
    way: z.string().optional(),
    place: z.string().optional(),
    why: z.string().min(10)
  })
)

/** An open failure with its reason. */
export type Expected = z.infer<typeof expectedSchema>[number]

/** The open failures. @throws when one has no reason */
export function readExpected(text = fs.readFileSync(path.join(DATA, 'expected.yml'), 'utf8')): readonly Expected[] {
  return expectedSchema.parse(YAML.parse(text))
}

/** The judgement of a run. */
export interface Report {
  readonly passed: number
  /** Failures, also those that are expected. */
  readonly failed: number
  readonly skipped: number
  readonly isGood: boolean
  /** Lines to print: the table, then what is not as expected. */
  readonly lines: readonly string[]
}

function isOf(one: Expected, { id, way, place }: CaseResult): boolean {
  return one.id === id && (one.way ?? way) === way && (one.place ?? place) === place
}

/**
 * Judges results. A run is good when each failure is expected, and each expected failure failed wherever it ran. One
 * that was only skipped, or did not run, says nothing.
 */
export function judge(results: readonly CaseResult[], expected: readonly Expected[]): Report {
  const count = (state: string): number => results.filter((one) => one.state === state).length
  const failures = results.filter(({ state }) => state === 'failed')
  const unexpected = failures.filter((result) => !expected.some((one) => isOf(one, result)))
  const healed = results.filter((result) => result.state === 'passed' && expected.some((one) => isOf(one, result)))
  const lines = [
    ...table(results),
    '',
    ...skips(results),
    ...failures.filter((one) => !unexpected.includes(one)).map((one) => `expected  ${nameOf(one)}: ${one.why ?? ''}`),
    ...healed.map((one) => `HEALED    ${nameOf(one)}: it passes; take it out of expected.yml`),
    ...unexpected.map((one) => `FAILED    ${nameOf(one)}: ${one.why ?? ''}`)
  ]
  const isGood = results.length > 0 && unexpected.length + healed.length === 0
  return { passed: count('passed'), failed: failures.length, skipped: count('skipped'), isGood, lines }
}

function nameOf({ id, way, place }: CaseResult): string {
  return `${id} (${way}, ${place})`
}

/** A line for each way and place: what passed, failed and was skipped, by level. */
function table(results: readonly CaseResult[]): string[] {
  const rows = new Map<string, CaseResult[]>()
  for (const one of results) {
    const name = `${one.way.padEnd(24)} ${one.place.padEnd(8)} ${one.level.padEnd(7)}`
    rows.set(name, [...(rows.get(name) ?? []), one])
  }
  const cell = (all: readonly CaseResult[], state: string): string =>
    String(all.filter((one) => one.state === state).length).padStart(7)
  return [
    `${'way'.padEnd(24)} ${'place'.padEnd(8)} ${'level'.padEnd(7)}  passed failed skipped`,
    ...[...rows].map(([name, all]) => `${name} ${cell(all, 'passed')}${cell(all, 'failed')}${cell(all, 'skipped')}`)
  ]
}

/** One line for each reason of a skip. */
function skips(results: readonly CaseResult[]): string[] {
  const reasons = new Map<string, string[]>()
  for (const { state, why = '', id, way } of results)
    if (state === 'skipped') reasons.set(why, [...(reasons.get(why) ?? []), `${way} ${id}`])
  return [...reasons].map(([why, names]) => `skipped   ${names.length}, such as ${names[0] ?? ''}: ${why}`)
}
