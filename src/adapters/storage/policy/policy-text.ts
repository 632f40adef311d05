import { isMap, isScalar, isSeq, LineCounter, parseDocument, type Document, type Node } from 'yaml'
import { MAX_RULES, readRule, type RuleFault, unknownKeys } from '../../../domain/policy/read-rule.js'
import type { PolicyRule } from '../../../domain/policy/rule.js'
import { messageOf } from '../../../kit/errors.js'
import { isRecord } from '../../../kit/json.js'
import { shown } from '../../../kit/text.js'
import { unresolvedAlias, yamlReason } from '../../../kit/yaml-reason.js'
import type { PolicyFault, PolicyFaults } from '../../../ports/policy.js'

/** Largest policy file, in bytes. */
export const MAX_POLICY_BYTES = 262_144
/** Uses of YAML anchors in one file, their contents counted. */
const MAX_ALIASES = 64
const MAX_FAULTS = 20

/** A parsed policy file, or its faults. */
export type PolicyReading =
  | { readonly ok: true; readonly rules: readonly PolicyRule[]; readonly places: readonly RulePlace[] }
  | { readonly ok: false; readonly faults: PolicyFaults }

/** Where a rule stands in its text. */
export interface RulePlace {
  readonly line: number
  /** Of the rule's first character, after a dash. */
  readonly offset: number
  /** Is it an element of a `[...]` list? */
  readonly isFlow: boolean
}

/**
 * Reads the text of a policy file: a mapping with the one key `rules`, a list. Every key it does not know is a fault.
 * Never throws.
 */
export function readPolicy(text: string): PolicyReading {
  const lines = new LineCounter()
  const lineAt = (offset: number): number => lines.linePos(offset).line
  try {
    const document = parseDocument(text, {
      lineCounter: lines,
      prettyErrors: false,
      uniqueKeys: true,
      logLevel: 'silent'
    })
    if (document.errors.length === 0) return new PolicyReader(document, lineAt).read()
    return failed(document.errors.map((one) => ({ line: lineAt(one.pos[0]), reason: yamlReason(one.code) })))
  } catch (error) {
    return failed([aliasFault(text, messageOf(error), lineAt) ?? { line: null, reason: shown(messageOf(error)) }])
  }
}

/** A text that begins with `*` without quotes parses as an alias. The error of the parser has no position. */
function aliasFault(text: string, message: string, lineAt: (offset: number) => number): PolicyFault | null {
  const name = unresolvedAlias(message)
  if (name === null) return null
  const reason = `"*${shown(name)}" begins with a * and needs quotes; a capability has its * at the end`
  return { line: lineAt(Math.max(0, text.indexOf(`*${name}`))), reason }
}

function failed(faults: readonly PolicyFault[]): PolicyReading {
  const inOrder = [...faults].sort((a, b) => (a.line ?? 0) - (b.line ?? 0))
  return { ok: false, faults: { list: inOrder.slice(0, MAX_FAULTS), more: Math.max(0, faults.length - MAX_FAULTS) } }
}

class PolicyReader {
  readonly #document: Document.Parsed
  readonly #lineAt: (offset: number) => number
  readonly #faults: PolicyFault[] = []

  constructor(document: Document.Parsed, lineAt: (offset: number) => number) {
    this.#document = document
    this.#lineAt = lineAt
  }

  read(): PolicyReading {
    const { contents } = this.#document
    if (contents === null || (isScalar(contents) && contents.value === null)) return { ok: true, rules: [], places: [] }
    const data: unknown = this.#document.toJS({ maxAliasCount: MAX_ALIASES })
    if (!isMap(contents) || !isRecord(data))
      return failed([{ line: 1, reason: 'the file is a mapping with the key rules' }])
    this.#tell(unknownKeys(data, { known: ['rules'], of: 'the file', path: [] }))
    const list = data['rules'] ?? []
    const read = Array.isArray(list)
      ? list.slice(0, MAX_RULES).map((one: unknown, index) => this.#rule(one, index))
      : []
    if (!Array.isArray(list)) this.#tell([{ path: ['rules'], reason: 'rules is a list' }])
    else if (list.length > MAX_RULES) this.#tell([{ path: ['rules'], reason: `more than ${MAX_RULES} rules` }])
    const rules = read.filter((one) => one !== null)
    this.#sameNames(rules)
    return this.#faults.length > 0 ? failed(this.#faults) : { ok: true, rules, places: this.#places() }
  }

  #rule(value: unknown, index: number): PolicyRule | null {
    const path = ['rules', index]
    // A value in the place of a rule has no line of its own when it is an alias.
    const { rule, faults } = readRule(isMap(this.#nodeAt(path)) ? value : null)
    this.#tell(faults.map((one) => ({ path: [...path, ...one.path], reason: one.reason })))
    return rule === null ? null : { ...rule, line: this.#lineOf(this.#nodeAt(path)) }
  }

  #sameNames(rules: readonly PolicyRule[]): void {
    const first = new Map<string, number>()
    for (const { name, line } of rules) {
      const before = name === undefined ? undefined : first.get(name)
      if (before !== undefined)
        this.#faults.push({ line, reason: `name: the rule at line ${before} is called "${name}" already` })
      else if (name !== undefined) first.set(name, line)
    }
  }

  #tell(faults: readonly RuleFault[]): void {
    for (const { path, reason } of faults) this.#faults.push({ line: this.#lineAtPath(path), reason })
  }

  /** The line of the last key of a path; without a key, of the value. Behind an alias it is the line of the alias. */
  #lineAtPath(path: RuleFault['path']): number {
    const parent =
      path.length === 0
        ? null
        : path.length === 1
          ? this.#document.contents
          : this.#document.getIn(path.slice(0, -1), true)
    const pair = isMap(parent)
      ? parent.items.find(({ key }) => String(isScalar(key) ? key.value : key) === path.at(-1))
      : undefined
    return this.#lineOf(pair?.key ?? this.#nodeAt(path))
  }

  #nodeAt(path: RuleFault['path']): unknown {
    for (let length = path.length; length > 0; length--) {
      const node: unknown = this.#document.getIn(path.slice(0, length), true)
      if (node !== undefined && node !== null) return node
    }
    return this.#document.contents
  }

  #lineOf(node: unknown): number {
    return this.#lineAt((node as Node | null)?.range?.[0] ?? 0)
  }

  #places(): RulePlace[] {
    const list = this.#nodeAt(['rules'])
    if (!isSeq(list)) return []
    return list.items.map((item) => ({
      line: this.#lineOf(item),
      offset: (item as Node | null)?.range?.[0] ?? 0,
      isFlow: list.flow === true
    }))
  }
}
