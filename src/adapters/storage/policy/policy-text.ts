import { isMap, isScalar, isSeq, LineCounter, parseDocument, type Document, type ErrorCode, type Node } from 'yaml'
import { MAX_RULES, readRule, type RuleFault, unknownKeys } from '../../../domain/policy/read-rule.js'
import type { PolicyRule } from '../../../domain/policy/rule.js'
import { messageOf } from '../../../kit/errors.js'
import { isRecord } from '../../../kit/json.js'
import { shown } from '../../../kit/text.js'
import type { PolicyFault, PolicyFaults } from '../../../ports/policy.js'

/** Largest policy file, in bytes. */
export const MAX_POLICY_BYTES = 262_144
/** Uses of YAML anchors in one file, their contents counted. */
const MAX_ALIASES = 64
/** Faults that are told of one file. */
const MAX_FAULTS = 20

/** A policy file read, or what is wrong with it. */
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

/** What a mistake in the form of the file means for whoever wrote it. */
const YAML_FAULTS: { readonly [C in ErrorCode]?: string } = {
  BAD_INDENT: 'the indentation does not fit the lines above, or a bracket or brace above is not closed',
  TAB_AS_INDENT: 'a tab stands where the line is indented; use spaces',
  DUPLICATE_KEY: 'the key stands there twice',
  MULTILINE_IMPLICIT_KEY: 'a ":" is missing behind a key, or the line is not indented like those above',
  BLOCK_AS_IMPLICIT_KEY: 'a value stands where a key should, or the line is not indented like those above',
  BLOCK_IN_FLOW: 'a line with a dash or a key stands within [ ] or { }; is a bracket not closed?',
  MISSING_CHAR: 'something is not closed or not parted here: a bracket, a brace, a quote or a comma is missing',
  BAD_SCALAR_START: 'a text begins with a character that needs quotes around the text',
  UNEXPECTED_TOKEN: 'something stands here that does not belong here',
  MULTIPLE_DOCS: 'a line of three dashes begins a second document; a policy is one'
}

/** Reads the text of a policy file: a mapping with the one key `rules`, a list. Every key it does not know is a fault. Never throws. */
export function readPolicy(text: string): PolicyReading {
  const lines = new LineCounter()
  const lineAt = (offset: number): number => lines.linePos(offset).line
  try {
    const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: true, logLevel: 'silent' })
    if (document.errors.length === 0) return new PolicyReader(document, lineAt).read()
    return failed(document.errors.map((one) => ({ line: lineAt(one.pos[0]), reason: YAML_FAULTS[one.code] ?? shown(one.message) })))
  } catch (error) {
    return failed([aliasFault(text, messageOf(error), lineAt) ?? { line: null, reason: shown(messageOf(error)) }])
  }
}

/** A text that begins with `*` and has no quotes is taken for an alias; nobody says where it stands. */
function aliasFault(text: string, message: string, lineAt: (offset: number) => number): PolicyFault | null {
  const name = /^Unresolved alias .*: (\S+)$/.exec(message)?.[1]
  if (name === undefined) return null
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
    if (!isMap(contents) || !isRecord(data)) return failed([{ line: 1, reason: 'the file is a mapping with the key rules' }])
    this.#tell(unknownKeys(data, { known: ['rules'], of: 'the file', path: [] }))
    const list = data['rules'] ?? []
    const read = Array.isArray(list) ? list.slice(0, MAX_RULES).map((one: unknown, index) => this.#rule(one, index)) : []
    if (!Array.isArray(list)) this.#tell([{ path: ['rules'], reason: 'rules is a list' }])
    else if (list.length > MAX_RULES) this.#tell([{ path: ['rules'], reason: `more than ${MAX_RULES} rules` }])
    const rules = read.filter((one) => one !== null)
    this.#sameNames(rules)
    return this.#faults.length > 0 ? failed(this.#faults) : { ok: true, rules, places: this.#places() }
  }

  #rule(value: unknown, index: number): PolicyRule | null {
    const path = ['rules', index]
    // What stands for a rule elsewhere has no line of its own.
    const { rule, faults } = readRule(isMap(this.#nodeAt(path)) ? value : null)
    this.#tell(faults.map((one) => ({ path: [...path, ...one.path], reason: one.reason })))
    return rule === null ? null : { ...rule, line: this.#lineOf(this.#nodeAt(path)) }
  }

  #sameNames(rules: readonly PolicyRule[]): void {
    const first = new Map<string, number>()
    for (const { name, line } of rules) {
      const before = name === undefined ? undefined : first.get(name)
      if (before !== undefined) this.#faults.push({ line, reason: `name: the rule at line ${before} is called "${name}" already` })
      else if (name !== undefined) first.set(name, line)
    }
  }

  #tell(faults: readonly RuleFault[]): void {
    for (const { path, reason } of faults) this.#faults.push({ line: this.#lineAtPath(path), reason })
  }

  /** The line of a key, where the path ends with one, else of what it leads to or, behind an alias, of what stands for it. */
  #lineAtPath(path: RuleFault['path']): number {
    const parent = path.length === 0 ? null : path.length === 1 ? this.#document.contents : this.#document.getIn(path.slice(0, -1), true)
    const pair = isMap(parent) ? parent.items.find(({ key }) => String(isScalar(key) ? key.value : key) === path.at(-1)) : undefined
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
