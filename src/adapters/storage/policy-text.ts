import { isMap, isScalar, isSeq, LineCounter, parseDocument, type Document, type Node } from 'yaml'
import type { PolicyRule } from '../../domain/policy/rule.js'
import { MAX_RULES, PARTY_KEYS, policyRuleSchema, RULE_KEYS } from '../../domain/policy/schema.js'
import { messageOf } from '../../kit/errors.js'
import { isRecord } from '../../kit/json.js'
import { nearest } from '../../kit/text.js'
import type { PolicyFault } from '../../ports/policy.js'

/** Largest policy file, in bytes. */
export const MAX_POLICY_BYTES = 262_144
/** Uses of YAML anchors in one file, their contents counted. */
const MAX_ALIASES = 64
/** Faults that are told of one file. */
const MAX_FAULTS = 20

/** A policy file read, or what is wrong with it. */
export type PolicyReading =
  | { readonly ok: true; readonly rules: readonly PolicyRule[]; readonly places: readonly RulePlace[] }
  | { readonly ok: false; readonly faults: readonly PolicyFault[] }

/** Where a rule stands in its text. */
export interface RulePlace {
  readonly line: number
  /** Of the rule's first character, after a dash. */
  readonly offset: number
  /** Is it an element of a `[...]` list? */
  readonly isFlow: boolean
}

/** Reads the text of a policy file: a mapping with the one key `rules`, a list. Every key it does not know is a fault. Never throws. */
export function readPolicy(text: string): PolicyReading {
  const lines = new LineCounter()
  const lineAt = (offset: number): number => lines.linePos(offset).line
  try {
    const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: true, logLevel: 'silent' })
    if (document.errors.length > 0) return failed(document.errors.map((one) => ({ line: lineAt(one.pos[0]), reason: one.message })))
    return new Reader(document, lineAt).read()
  } catch (error) {
    return failed([{ line: null, reason: messageOf(error) }])
  }
}

function failed(faults: readonly PolicyFault[]): PolicyReading {
  return { ok: false, faults: faults.slice(0, MAX_FAULTS) }
}

class Reader {
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
    this.#unknownKeys(contents, ['rules'], 'the file')
    const list = data['rules'] ?? []
    const node = this.#nodeAt(['rules'])
    if (!Array.isArray(list)) this.#fault(node, 'rules is a list')
    else if (list.length > MAX_RULES) this.#fault(node, `more than ${MAX_RULES} rules`)
    const rules = Array.isArray(list) && this.#faults.length === 0 ? list.map((one, index) => this.#rule(one, index)) : []
    if (this.#faults.length > 0) return failed(this.#faults)
    return { ok: true, rules: rules.filter((one) => one !== null), places: this.#places() }
  }

  #rule(value: unknown, index: number): PolicyRule | null {
    const node = this.#nodeAt(['rules', index])
    if (!isRecord(value) || !isMap(node)) return this.#fault(node, 'a rule is a mapping with the key decision')
    this.#unknownKeys(node, RULE_KEYS, 'a rule')
    for (const side of ['from', 'to']) {
      const party: unknown = node.get(side, true)
      if (isMap(party)) this.#unknownKeys(party, PARTY_KEYS, side)
    }
    const checked = policyRuleSchema.safeParse(value)
    if (checked.success) return { ...checked.data, line: this.#lineOf(node) }
    const told = this.#faults.length
    for (const issue of checked.error.issues) {
      if (issue.code === 'unrecognized_keys') continue
      const path = issue.path.filter((step) => typeof step !== 'symbol')
      const place = this.#nodeAt(['rules', index, ...path]) ?? node
      this.#fault(place, `${path.length === 0 ? 'the rule' : path.join('.')}: ${issue.message}`)
    }
    // Unknown keys are told above, but behind an alias they are not found: a rule must never be left out silently.
    return this.#faults.length > told || told > 0 ? null : this.#fault(node, 'the rule has a key that is not known')
  }

  #unknownKeys(map: unknown, known: readonly string[], of: string): void {
    if (!isMap(map)) return
    for (const { key } of map.items) {
      const name = String(isScalar(key) ? key.value : key)
      if (known.includes(name)) continue
      const [near] = nearest(name, known)
      this.#fault(
        key,
        `${of} has no key ${JSON.stringify(name)}${near === undefined ? '' : `; did you mean ${near}?`} (${known.join(', ')})`
      )
    }
  }

  #nodeAt(path: readonly (string | number)[]): unknown {
    for (let length = path.length; length > 0; length--) {
      const node: unknown = this.#document.getIn(path.slice(0, length), true)
      if (node !== undefined && node !== null) return node
    }
    return this.#document.contents
  }

  #fault(node: unknown, reason: string): null {
    this.#faults.push({ line: this.#lineOf(node), reason })
    return null
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
