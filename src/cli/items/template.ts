import { NodeError } from '../../kit/errors.js'
import { isRecord, jsonSyntaxReason } from '../../kit/json.js'
import {
  fillTemplate,
  type Lookup,
  malformedIn,
  type Reference,
  referencesIn,
  referenceText,
  valueAt
} from '../../kit/template/fill.js'
import { nearest, shellWord, shown } from '../../kit/text.js'
import { boundedJson } from '../options.js'
import type { RawItem } from './source.js'

const OF_ITEMS: ReadonlySet<string> = new Set(['item', 'file', 'text'])
const NAMES = ['item', 'file', 'text', 'goal', 'round', 'check'] as const
type Name = (typeof NAMES)[number]

/** Characters of a template that a suggestion repeats, at most. */
const REPEATED_MAX = 500

/** Values of the swarm for templates: its goal, its round (1 without a loop), and the output of the last check. */
export interface TemplateSwarm {
  readonly goal: string
  readonly round: number
  readonly check: string
}

interface TemplateValues {
  readonly item: RawItem | null
  readonly swarm: TemplateSwarm
}

/** Makes the input of an item when there is no template: a JSON object is the input itself. */
export function plainInput(item: RawItem): unknown {
  if (item.file !== null) return { file: item.file, ...contentsOf(item) }
  return isRecord(item.value) ? item.value : { item: item.value }
}

function contentsOf({ contents }: RawItem): { text?: string; bytes?: Uint8Array } {
  if (contents === null) return {}
  return typeof contents === 'string' ? { text: contents } : { bytes: contents }
}

/** A template of `--input`, parsed once. */
export interface InputTemplate {
  /** Has it any placeholder that stands for something of an item? */
  readonly needsItems: boolean
  /**
   * The input of one item; null: of a swarm without items.
   * @throws NodeError USAGE for a placeholder without a value, and for too large an input
   */
  inputOf(item: RawItem | null, swarm: TemplateSwarm): unknown
}

/**
 * Parses a JSON template over `{item}`, `{file}`, `{text}`, `{goal}`, `{round}` and `{check}`, in the form of
 * {@link fillTemplate}: a member of an item is `{item/name}`, and `{{name}}` is the text `{name}`.
 * @throws NodeError USAGE when it is no JSON, beyond its limits, or has an unknown placeholder
 */
export function parseTemplate(text: string): InputTemplate {
  let template: unknown
  try {
    template = JSON.parse(text)
  } catch (error) {
    throw new NodeError('USAGE', `--input is not JSON: ${jsonSyntaxReason(error)}`, {
      next: ['--input \'{"text":"{item}"}\''],
      cause: error
    })
  }
  boundedJson(template, '--input')
  const references = referencesIn(template).map(({ reference }) => reference)
  refuseUnknown(text, [
    ...references.filter(({ name, facet }) => !isName(name) || facet !== 'result').map(referenceText),
    ...malformedIn(template, isName).map((one) => one.text)
  ])
  return {
    needsItems: references.some(({ name }) => OF_ITEMS.has(name)),
    inputOf(item, swarm) {
      for (const reference of references) checkValue(reference, { item, swarm })
      const lookup: Lookup = ({ name, pointer }) =>
        isName(name) ? valueAt(valueOf(name, { item, swarm }), pointer) : undefined
      const filled = fillTemplate(template, lookup)
      if (filled.ok) return filled.value
      throw new NodeError('USAGE', `--input${item === null ? '' : ` of ${shown(item.name)}`}: ${filled.reason}`)
    }
  }
}

function isName(name: string): name is Name {
  return NAMES.some((one) => one === name)
}

/** @throws NodeError USAGE with the template as it may be meant */
function refuseUnknown(template: string, unknown: readonly string[]): void {
  const [first] = unknown
  if (first === undefined) return
  let meant = template
  for (const one of new Set(unknown)) meant = meant.replaceAll(one, correctionOf(one) ?? `{${one}}`)
  const others = new Set(unknown).size - 1
  const correction = correctionOf(first)
  const message =
    `--input: there is no placeholder ${shown(first, 100)}${others === 0 ? '' : ` (and ${others} more)`}` +
    `${correction === null ? '' : ` (did you mean ${correction}?)`}; for the text itself write {${shown(first, 100)}}`
  const isShort = template.length <= REPEATED_MAX && meant !== template
  throw new NodeError('USAGE', message, {
    data: { placeholders: NAMES.map((name) => `{${name}}`) },
    next: isShort ? [`--input ${shellWord(meant)}`] : ['a2a-node swarm run --help']
  })
}

/** The known placeholder that an unknown one resembles, with its members after a slash; null for none. */
function correctionOf(unknown: string): string | null {
  const [, word = '', rest = ''] = /^\{\s*([\w-]+)\s*(.*?)\s*\}$/s.exec(unknown) ?? []
  const name = isName(word) ? word : nearest(word, NAMES)[0]
  if (name === undefined) return null
  const path = rest
    .replace(/^[./]/, '')
    .replace(/\[(\w+)\]/g, '.$1')
    .split(/[./]/)
    .filter((step) => step !== '')
  if (path.some((step) => !/^[\w-]+$/.test(step))) return null
  return `{${[name, ...path].join('/')}}`
}

/** @throws NodeError USAGE for a placeholder that has no value for this item */
function checkValue(reference: Reference, values: TemplateValues): void {
  const value = isName(reference.name) ? valueOf(reference.name, values) : undefined
  if (valueAt(value, reference.pointer) !== undefined) return
  const of = values.item === null ? '' : ` in ${shown(values.item.name, 100)}`
  throw new NodeError('USAGE', `--input: ${referenceText(reference)} has no value${of}`)
}

function valueOf(name: Name, { item, swarm }: TemplateValues): unknown {
  if (name === 'goal' || name === 'round' || name === 'check') return swarm[name]
  if (item === null) throw new NodeError('USAGE', `{${name}} needs --items`)
  if (name === 'item') return item.value
  if (name === 'file') {
    if (item.file !== null) return item.file
    throw new NodeError('USAGE', '{file} needs the files of a glob; for lines use {item}')
  }
  if (typeof item.contents === 'string') return item.contents
  const reason = item.contents === null ? '{text} needs --attach and a glob' : `{text}: ${item.name} is not UTF-8 text`
  throw new NodeError('USAGE', reason)
}
